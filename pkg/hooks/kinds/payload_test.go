package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestABodyIsTextUnlessItIsNone(t *testing.T) {
	t.Parallel()
	const text, coded = `"body":`, `"body_base64":`
	for _, tt := range []struct{ name, body, field string }{
		{"empty", "", text},
		{"text", "über", text},
		{"quotes and line breaks, however many", "\"\\\n\r\t\"", text},
		{"text with a colour", "\x1b[1mone of many words in the line\x1b[0m", text},
		{"bytes that are not UTF-8", "\xff", coded},
		{"control characters", "\x01\x01\x01", coded},
		{"mostly control characters", "ab\x01\x02", coded},
	} {
		for _, times := range []int{1, largeBody} {
			body := strings.Repeat(tt.body, times)
			var p payload
			p.message(&hooks.Message{Body: []byte(body)})
			if got := string(p.bytes()); !strings.HasPrefix(got, tt.field) {
				t.Errorf("%s, %d times: %.40s, want %s", tt.name, times, got, tt.field)
			}
		}
	}
}

// A large body is written as a small one is, and of a batch each where it belongs.
func TestLargeBodiesAreWrittenLikeSmallOnes(t *testing.T) {
	t.Parallel()
	var ms []hooks.Message
	var want []string
	for _, piece := range []string{"x", "\"\n", "ü", "\x01", "\xff\x00"} {
		for _, size := range []int{0, 1, 2, largeBody - 1, largeBody, largeBody + 1, 3*encodeAtOnce + largeBody + 1} {
			body := strings.Repeat(piece, size/len(piece)+1)[:size]
			ms, want = append(ms, hooks.Message{Body: []byte(body)}), append(want, body)
		}
	}
	var rest, line payload
	rest.batch(ms)
	line.line(3, &rest)
	var out bytes.Buffer
	n, _, err := line.writeTo(&out, nil)
	if err != nil || n != int64(out.Len()) || n != line.length() {
		t.Fatalf("wrote %d of %d bytes, %v; %d were expected", n, out.Len(), err, line.length())
	}
	var got struct {
		ID       string
		Messages []struct {
			Body   *string
			Base64 []byte `json:"body_base64"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.ID != "3" || len(got.Messages) != len(want) {
		t.Fatalf("id %q, %d messages, %v", got.ID, len(got.Messages), err)
	}
	for i, m := range got.Messages {
		body := string(m.Base64)
		if m.Body != nil {
			body = *m.Body
		}
		if body != want[i] {
			t.Errorf("message %d: another body, of %d bytes, want %d", i, len(body), len(want[i]))
		}
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 1 {
		t.Errorf("%d lines, want 1", lines)
	}
}

// A failed write says how much went out: from that follows which requests a
// worker may have read.
func TestAPayloadCountsWhatWentOut(t *testing.T) {
	t.Parallel()
	var p payload
	p.message(&hooks.Message{Body: bytes.Repeat([]byte{1}, 1<<20)})
	var out narrow
	n, _, err := p.writeTo(&out, nil)
	if err == nil || n != 100_000 {
		t.Errorf("%d bytes, %v, want 100000 and an error", n, err)
	}
}

// narrow takes 100,000 bytes.
type narrow struct{ n int }

func (l *narrow) Write(p []byte) (int, error) {
	take := min(len(p), 100_000-l.n)
	l.n += take
	if take < len(p) {
		return take, errors.New("no more")
	}
	return take, nil
}

// Handing a large body to a hook takes next to no memory besides it, whatever is
// in it. Every kind of call is tried; the rest of the process allocates little.
func TestALargeBodyIsNotCopiedForAHook(t *testing.T) {
	const size = 64 << 20
	body := bytes.Repeat([]byte{1}, size)
	worker := newHook(t, workerHandler(t, "swallow"), Options{}).(*workers)
	command := newHook(t, sh(t, "cat >/dev/null; echo ack >&4"), Options{}).(*command)
	half := []hooks.Message{{Body: body[:size/2]}, {Body: body[size/2:]}}
	ctx := deadline(t, patience)
	for name, call := range map[string]func() (hooks.Outcome, error){
		"worker":          func() (hooks.Outcome, error) { return worker.Handle(ctx, hooks.Message{Body: body}) },
		"worker, a batch": func() (hooks.Outcome, error) { return first(worker.HandleBatch(ctx, half)) },
		"exec":            func() (hooks.Outcome, error) { return command.Handle(ctx, hooks.Message{Body: body}) },
		"exec, a batch": func() (hooks.Outcome, error) {
			return first(newHook(t, sh(t, "cat >/dev/null"), Options{}).(hooks.BatchHook).HandleBatch(ctx, half))
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			o, err := call()
			if err != nil || o.Verdict != hooks.Ack {
				t.Fatalf("%+v, %v, want an ack", o, err)
			}
			if grown := allocated() - before; grown > size/8 {
				t.Errorf("%d bytes were allocated for a body of %d", grown, size)
			}
		})
	}
}

func first(each []hooks.Outcome, err error) (hooks.Outcome, error) {
	if err != nil {
		return hooks.Outcome{}, err
	}
	return each[0], nil
}

// allocated is how many bytes this process has asked for so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// swallow acks each request without keeping its body.
func swallow() {
	id := make([]byte, 0, 32)
	buf := make([]byte, 1<<20)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return
		}
		id = append(id, buf[:min(n, cap(id)-len(id))]...)
		if buf[n-1] == '\n' {
			_, rest, _ := bytes.Cut(id, []byte(`:"`))
			number, _, _ := bytes.Cut(rest, []byte(`"`))
			fmt.Printf(`{"id":"%s","outcome":"ack"}`+"\n", number)
			id = id[:0]
		}
	}
}
