package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestPayload_BodyIsTextUnlessItIsNone(t *testing.T) {
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
			var p Payload
			p.message(&hooks.Message{Body: []byte(body)})
			if got := string(p.Bytes()); !strings.HasPrefix(got, tt.field) {
				t.Errorf("%s, %d times: %.40s, want %s", tt.name, times, got, tt.field)
			}
		}
	}
}

// A large body is written as a small one is, and of a batch each where it belongs.
func TestPayload_LargeBodiesAreWrittenLikeSmallOnes(t *testing.T) {
	t.Parallel()
	var ms []hooks.Message
	var want []string
	for _, piece := range []string{"x", "\"\n", "ü", "\x01", "\xff\x00"} {
		for _, size := range []int{0, 1, 2, largeBody - 1, largeBody, largeBody + 1, 3*encodeAtOnce + largeBody + 1} {
			body := strings.Repeat(piece, size/len(piece)+1)[:size]
			ms, want = append(ms, hooks.Message{Body: []byte(body)}), append(want, body)
		}
	}
	var rest, line Payload
	rest.Batch(ms)
	line.Line(3, &rest)
	var out bytes.Buffer
	n, _, err := line.Send(&out, nil)
	if err != nil || n != int64(out.Len()) || n != line.Length() {
		t.Fatalf("wrote %d of %d bytes, %v; %d were expected", n, out.Len(), err, line.Length())
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
func TestPayload_CountsWhatWentOut(t *testing.T) {
	t.Parallel()
	var p Payload
	p.message(&hooks.Message{Body: bytes.Repeat([]byte{1}, 1<<20)})
	var out narrow
	n, _, err := p.Send(&out, nil)
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
