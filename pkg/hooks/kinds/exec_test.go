package kinds

import (
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestExecOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         hooks.Outcome
	}{
		{"exit code 0 acks", "exit 0", hooks.Outcome{Verdict: hooks.Ack}},
		{"exit code 65 drops", "exit 65", hooks.Outcome{Verdict: hooks.Drop, Reason: "exit status 65"}},
		{"exit code 75 retries", "exit 75", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 75"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := handle(t, sh(t, tt.script), hooks.Message{}); got.Verdict != tt.want.Verdict || got.Reason != tt.want.Reason {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
