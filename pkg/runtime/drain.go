package runtime

import (
	"context"
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// drainPoll is how often the queues are looked at; drainQuiet is how many looks
// in a row must find nothing.
const (
	drainPoll  = 200 * time.Millisecond
	drainQuiet = 3
)

// stopWhenEmpty ends the intake once every queue has been empty, with nothing
// in hand, for a few looks in a row: a copy may be on its way between two.
func (r *runner) stopWhenEmpty(intake context.Context, s *session, stop context.CancelCauseFunc) {
	r.looking.Store(s)
	defer r.looking.Store(nil)
	l := &depthProbe{session: s, stop: intake.Done()}
	for quiet := 0; quiet < drainQuiet; {
		if !backoff.Sleep(drainPoll, intake.Done(), s.ctx.Done()) {
			return
		}
		if r.empty(l) {
			quiet++
		} else {
			quiet = 0
		}
	}
	r.reportWaiting(l)
	stop(errDrained)
}

// empty reports whether no message is ready on the broker and none is in hand.
func (r *runner) empty(l *depthProbe) bool {
	for _, c := range r.consumers {
		if c.inHand.Load() > 0 || c.timers.Count() > 0 || c.returning() {
			return false
		}
		if n, err := l.ready(c.queue); err != nil || n > 0 {
			return false
		}
	}
	return true
}

// reportWaiting says how many messages the drain has not waited for: their
// retries are due later, in days maybe.
func (r *runner) reportWaiting(l *depthProbe) {
	told := map[string]bool{}
	for _, c := range r.consumers {
		for _, place := range c.q.Waiting {
			if told[place] {
				continue
			}
			told[place] = true
			if n, err := l.ready(place); err == nil && n > 0 {
				r.log.Warn("messages still wait for their retry, on the broker; the drain is over without them", logkey.Target, place, logkey.Count, n)
			}
		}
	}
}
