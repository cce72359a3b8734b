package worker

import (
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
)

// A process that answers one request twice at once has given no answer, whatever
// the two say.
func TestWorkerAnswersOneRequestTwice(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"ack", "drop", "retry"} {
		o, log := hooktest.Logged()
		hook := newHook(t, shWorker(t, `read -r line; printf '{"id":"1","outcome":"ack"}\n{"id":"1","outcome":"`+second+`"}\n'; read -r line`), o)
		got := hooktest.Handle(t, hook, hooks.Message{})
		if got.Verdict != hooks.Failed || got.Reason != "malformed answer: the request was answered twice" {
			t.Errorf("ack and %s: %+v, want a failure that says why", second, got)
		}
		hooktest.Eventually(t, "the process to be ended", func() bool { return strings.Contains(log.String(), "answered request 1 twice") })
	}
}
