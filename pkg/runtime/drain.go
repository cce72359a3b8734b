package runtime

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// drainPoll is how often the queues are looked at; drainQuiet is how many looks
// in a row must find nothing.
const (
	drainPoll  = 200 * time.Millisecond
	drainQuiet = 3
)

// returnsFor is how long a message that was requeued may be nowhere: a quorum
// queue shows it again once its log is on the disk, which may be busy.
const returnsFor = 2 * time.Second

// stopWhenEmpty ends the intake once every queue has been empty, with nothing
// in hand, for a few looks in a row: a copy may be on its way between two.
func (r *runner) stopWhenEmpty(intake context.Context, s *session, stop context.CancelCauseFunc) {
	r.looking.Store(s)
	defer r.looking.Store(nil)
	l := &looker{session: s, stop: intake.Done()}
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
func (r *runner) empty(l *looker) bool {
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

// requeued notes that a message was given back to a quorum queue.
func (c *consumer) requeued(d *delivery, step settle.Step) {
	if step == (settle.Reject{Requeue: true}) && c.q.Policy.Type == settle.Quorum {
		c.caution.own.Add(&d.Delivery)
		now := time.Now()
		c.returned.Store(&now)
	}
}

// returning reports whether a requeued message may still be on its way.
func (c *consumer) returning() bool {
	last := c.returned.Load()
	return last != nil && time.Since(*last) < returnsFor
}

// reportWaiting says how many messages the drain has not waited for: their
// retries are due later, in days maybe.
func (r *runner) reportWaiting(l *looker) {
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

// looker counts messages on a channel of its own, which an error closes.
type looker struct {
	session *session
	stop    <-chan struct{}
	ch      *amqp.Channel
}

func (l *looker) ready(queue string) (int, error) {
	if l.ch == nil || l.ch.IsClosed() {
		ch, err := l.session.conn.Channel()
		if err != nil {
			return 0, err
		}
		l.ch = ch
	}
	ch := l.ch
	q, err := ask(l.session, l.stop, func() (amqp.Queue, error) {
		return ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	})
	if err != nil {
		l.ch = nil // it may wait for the answer for ever
	}
	return q.Messages, err
}
