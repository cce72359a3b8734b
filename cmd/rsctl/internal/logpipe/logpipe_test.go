package logpipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 2 * time.Minute

func note(n uint64) []byte { return fmt.Appendf(nil, "%d dropped\n", n) }

func say(w io.Writer, lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(w, l+"\n")
	}
}

func TestLinesGoOutInTheirOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := New(&out, Size, note)
	var want strings.Builder
	for i := range 5000 {
		line := fmt.Sprintf("line %d %s", i, strings.Repeat("x", i))
		if i > 1000 && i%1000 != 0 {
			line = fmt.Sprint(i)
		}
		say(w, line)
		want.WriteString(line + "\n")
	}
	if !w.Close(patience) || out.String() != want.String() || w.Dropped() != 0 {
		t.Errorf("%d bytes went out, want %d; %d dropped", out.Len(), want.Len(), w.Dropped())
	}
}

func TestAStuckReaderCostsLinesWhichAreCountedAndToldOf(t *testing.T) {
	t.Parallel()
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := New(p, 10_000, note)
	line := strings.Repeat("y", 99)
	sent := 0
	for w.Dropped() < 100 { // the pipe takes some 64 KiB, the buffer its share
		say(w, line)
		sent++
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	if !w.Close(patience) {
		t.Error("the rest did not go out although somebody reads again")
	}
	_ = p.Close()
	text := <-read
	if got := strings.Count(text, line+"\n"); got != sent-100 {
		t.Errorf("%d lines arrived of %d that were kept", got, sent-100)
	}
	var told, n int
	for l := range strings.Lines(text) {
		if _, err := fmt.Sscanf(l, "%d dropped\n", &n); err == nil {
			told += n
		}
	}
	if told != 100 {
		t.Errorf("the log tells of %d dropped lines, want 100", told)
	}
}

func TestAStuckReaderKeepsNoEnd(t *testing.T) {
	t.Parallel()
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer r.Close()
	w := New(p, 1<<20, note)
	for range 20 {
		say(w, strings.Repeat("z", 9_999))
	}
	if w.Close(10 * time.Millisecond) {
		t.Error("all went out, to nobody")
	}
}

// broken fails while it is told to.
type broken struct {
	mu   sync.Mutex
	err  error
	part int // bytes of a failing write that get through
	got  bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		n := min(b.part, len(p))
		b.got.Write(p[:n])
		return n, b.err
	}
	return b.got.Write(p)
}

func (b *broken) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func TestALogThatFailsForAWhileGoesOnWithWholeLines(t *testing.T) {
	t.Parallel()
	out := &broken{part: 3}
	out.set(errors.New("no space left on device"))
	w := New(out, Size, note)
	say(w, "first")
	for w.Dropped() == 0 {
		time.Sleep(time.Millisecond)
	}
	out.set(nil)
	say(w, "second")
	if !w.Close(patience) || out.got.String() != "fir\nsecond\n1 dropped\n" {
		t.Errorf("got %q", out.got.String())
	}
}

func TestClosingALogThatFailsEnds(t *testing.T) {
	t.Parallel()
	out := &broken{}
	out.set(errors.New("broken pipe"))
	w := New(out, Size, note)
	say(w, "a", "b")
	if !w.Close(patience) || w.Dropped() != 2 {
		t.Errorf("%d dropped, want 2", w.Dropped())
	}
	say(w, "c")
	if w.Dropped() != 3 {
		t.Error("a line after the end was not counted")
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext ü 漢 \n":                    "plain\ttext ü 漢 \n",
		"a\x7fb\x01":                            `a\u007fb\u0001`,
		"\u0080\u009b31m\u00a0é":                "\\u0080\\u009b31m\u00a0é",
		"\u202eabc\u202c \u2066x\u2069":         `\u202eabc\u202c \u2066x\u2069`,
		"\u061c\u200e\u200f\u2028\u2029\u200b":  `\u061c\u200e\u200f\u2028\u2029` + "\u200b",
		"\u2027\u202f\u2065\u206a\u00ff\u0627x": "\u2027\u202f\u2065\u206a\u00ff\u0627x",
		"\xe2\x80 \xff":                         "\xe2\x80 \xff",
	} {
		if got := string(Escape([]byte(in))); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscapeKeepsJSON(f *testing.F) {
	f.Add("a\u0085\u202e\x7f\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatalf("%q cannot be written as JSON: %v", s, err)
		}
		var want, got map[string]string
		out := Escape(line)
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q is no JSON: %v", out, err)
		}
		_ = json.Unmarshal(line, &want)
		if fmt.Sprint(want) != fmt.Sprint(got) || strings.ContainsFunc(string(out), Unsafe) {
			t.Errorf("%q became %q", line, out)
		}
	})
}
