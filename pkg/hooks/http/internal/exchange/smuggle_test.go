package exchange

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange/exchangetest"
)

func TestMayBeRequest(t *testing.T) {
	t.Parallel()
	for name, body := range exchangetest.Smuggled {
		if want := !strings.HasPrefix(name, "no "); MayBeRequest([]byte(body)) != want {
			t.Errorf("%s: got %t", name, !want)
		}
	}
	for _, body := range []string{
		"", "/", " /", "text", `{"url":"https://shop.example/a/b","type":"application/json"}`, "see http://shop.example/x",
		"<br /><a href=/x>b</a> <i x='1' />", "10/12/2024 1 / 2", "a,/b", "\xc3\xa0 /", `{"method":"GET"}`, "WIDGETS",
	} {
		if MayBeRequest([]byte(body)) {
			t.Errorf("%q is held for a request", body)
		}
	}
}

func FuzzMayBeRequest(f *testing.F) {
	for _, body := range exchangetest.Smuggled {
		f.Add([]byte(body), 0)
	}
	f.Fuzz(func(t *testing.T, body []byte, from int) {
		if from < 0 || from > len(body) || MayBeRequest(body) {
			return
		}
		for line := range bytes.Lines(body[from:]) {
			words := bytes.FieldsFunc(line, func(r rune) bool { return r <= ' ' })
			if len(words) < 2 || len(words[0]) == 0 {
				continue
			}
			if isLetter(words[0][len(words[0])-1]) && words[1][0] == '/' && !bytes.HasPrefix(words[1], []byte("/>")) || bytes.Contains(bytes.ToUpper(line), []byte("HTTP/1.")) {
				t.Errorf("%q from %d: a server may read the request %q", body, from, line)
			}
		}
	})
}

func BenchmarkMayBeRequest(b *testing.B) {
	for name, part := range map[string]string{
		"addresses": `{"url":"https://shop.example/a/b/c","n":1},`,
		"words":     `{"name": "Ann Example", "city": "Köln", "n": 12},`,
	} {
		b.Run(name, func(b *testing.B) {
			body := bytes.Repeat([]byte(part), 512/len(part))
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if MayBeRequest(body) {
					b.Fatal("it is none")
				}
			}
		})
	}
}
