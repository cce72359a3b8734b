package runtime

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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
	var ch *amqp.Channel
	for quiet := 0; quiet < drainQuiet; {
		if !sleep(drainPoll, intake.Done(), s.ctx.Done()) {
			return
		}
		if ch == nil || ch.IsClosed() {
			var err error
			if ch, err = s.conn.Channel(); err != nil {
				continue // the connection is ending, or the next look works
			}
		}
		if r.empty(ch) {
			quiet++
		} else {
			quiet = 0
		}
	}
	stop(errDrained)
}

// empty reports whether no message is ready on the broker and none is in hand.
func (r *runner) empty(ch *amqp.Channel) bool {
	for _, c := range r.consumers {
		if c.inHand.Load() > 0 || c.timers.count() > 0 || c.returning() {
			return false
		}
		q, err := ch.QueueDeclarePassive(c.queue, true, false, false, false, nil)
		if err != nil || q.Messages > 0 {
			return false
		}
	}
	return true
}

// requeued notes that a message was given back to a quorum queue.
func (c *consumer) requeued(step settle.Step) {
	if step == (settle.Reject{Requeue: true}) && c.q.Policy.Type == settle.Quorum {
		now := time.Now()
		c.returned.Store(&now)
	}
}

// returning reports whether a requeued message may still be on its way.
func (c *consumer) returning() bool {
	last := c.returned.Load()
	return last != nil && time.Since(*last) < returnsFor
}
