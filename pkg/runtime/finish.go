package runtime

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// finishing is how a queue stops where handing back costs something: what has been
// prefetched runs first, as far as the time allows.
type finishing struct {
	asked context.Context // done with the stop
	until context.Context // done when nothing may start any more
}

// finishShare is the part of the shutdown timeout in which prefetched messages may
// start. The rest is for those that run.
func finishShare(shutdown time.Duration) time.Duration { return shutdown * 3 / 4 }

// finishing follows the end of intake until life is done.
func (r *runner) finishing(intake, work, life context.Context) (*finishing, func()) {
	until, end := context.WithCancel(work)
	return &finishing{intake, until}, func() {
		defer end()
		select {
		case <-intake.Done():
			backoff.Sleep(finishShare(r.cfg.ShutdownTimeout), until.Done(), life.Done())
		case <-life.Done():
		}
	}
}

// handling is st for what sub has been sent.
func (c *consumer) handling(st stages, sub *subscription) stages {
	if !c.finishes(sub) {
		return st
	}
	return stages{c.finishing.until, st.work}
}

func (c *consumer) finishes(sub *subscription) bool {
	return c.finishing != nil && c.handBackCosts(sub)
}

// cancelAtStop sees to it that nothing more comes while the reader waits for a slot.
func (c *consumer) cancelAtStop(st stages, sub *subscription) {
	select {
	case <-st.intake.Done():
		c.stopReading(sub)
	case <-sub.ctx.Done():
	}
}

// asked is done when nothing may wait at an open breaker any more.
func (c *consumer) asked(st stages) context.Context {
	if c.finishing == nil {
		return st.intake
	}
	return c.finishing.asked
}

// handBackCosts reports whether a message that is handed back loses an attempt, or
// may have no queue to go to.
func (c *consumer) handBackCosts(sub *subscription) bool {
	return c.q.GoesUnused || c.handBackCounts(sub)
}

func (c *consumer) handBackCounts(sub *subscription) bool {
	return c.q.Policy.Type == settle.Quorum && sub.session != nil && sub.session.conn != nil && !handsBackFree(sub.session.conn)
}

// retire closes the channel once the deliveries that came on it are settled; until
// then they can be, even when the server has ended the consumer.
func (c *consumer) retire(sub *subscription) {
	sub.unsettled.Wait()
	c.returnUnread(sub)
	sub.end(errChannelClosed)
}

// returnUnread hands back what a quorum queue has sent to a consumer after its
// cancel was confirmed: the client library drops it, and the end of the channel
// would count an attempt. Everything that was read is settled by now, so that all
// that is left on the channel (tag 0, multiple) is that. Before 4.3 it counts
// either way.
func (c *consumer) returnUnread(sub *subscription) {
	if c.q.Policy.Type == settle.Quorum && sub.err() == nil && handsBackFree(sub.session.conn) {
		_ = sub.ch.Nack(0, true, true) // the channel is about to end
	}
}

// stopReading cancels the consumer because the run stops, and says what that costs.
func (c *consumer) stopReading(sub *subscription) bool {
	if c.q.GoesUnused {
		sub.going.Do(func() { c.reportGoing(sub) })
	}
	return c.stopConsuming(sub)
}

// reportGoing says how many messages may go with the queue.
func (c *consumer) reportGoing(sub *subscription) {
	q, err := ask(sub.session, nil, func() (amqp.Queue, error) {
		ch, err := sub.session.conn.Channel()
		if err != nil {
			return amqp.Queue{}, err
		}
		defer ch.Close()
		return ch.QueueDeclarePassive(c.queue, false, false, false, false, nil)
	})
	switch {
	case err != nil:
		c.log.Warn("stopping; the broker deletes this queue, with what it holds, when nobody consumes it", logkey.Error, err)
	case q.Consumers <= 1:
		c.log.Warn("stopping the last consumer; the broker deletes this queue, with what it holds, when nobody consumes it", logkey.Count, q.Messages)
	}
}
