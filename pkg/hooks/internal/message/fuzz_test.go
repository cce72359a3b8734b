package message

import (
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// An answer line that is not clearly an ack never acks, and a reason never
// forges a second line.
func FuzzParseAnswer(f *testing.F) {
	for _, line := range []string{"ack", "drop no such order", "retry", "retry_after 30s busy", "retry_after -1s", "retry_after 1e9d", "ACK", "ack\x00", ""} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		o, err := ParseAnswer(line)
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if o.Verdict == hooks.Ack && word != "ack" {
			t.Errorf("%q acks", line)
		}
		if err != nil && o.Verdict != hooks.Failed {
			t.Errorf("%q: outcome %+v with the error %v", line, o, err)
		}
		if strings.ContainsAny(o.Reason, "\n\r\x00\x1b") || len(o.Reason) > MaxReason {
			t.Errorf("%q: reason %q", line, o.Reason)
		}
	})
}
