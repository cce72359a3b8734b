package monitor

import (
	"errors"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/runtime"
)

func TestAQueueWhoseCopiesCannotArriveIsNotReady(t *testing.T) {
	t.Parallel()
	s := NewStatus([]string{"q"})
	tell := func(events ...runtime.Event) {
		for _, e := range events {
			s.Observe(e)
		}
	}
	stalled := runtime.CopyStalled{Queue: "q", Err: errors.New("NO_ROUTE")}
	tell(runtime.Consuming{Queue: "q"}, stalled, stalled, runtime.CopyMoved{Queue: "q"})
	if r := s.Readiness(); r.Ready || !r.Queues[0].Paused || !strings.Contains(r.text(), "a copy cannot arrive: NO_ROUTE") {
		t.Errorf("with one copy that waits: %+v", r)
	}
	tell(runtime.Paused{Queue: "q", Err: errors.New("no such file")}, runtime.Resumed{Queue: "q"})
	if r := s.Readiness(); r.Ready {
		t.Error("a handler that works again made a queue ready whose copy waits")
	}
	tell(runtime.CopyMoved{Queue: "q"})
	if r := s.Readiness(); !r.Ready || r.Queues[0].Reason != "" {
		t.Errorf("when no copy waits any more: %+v", r)
	}
}
