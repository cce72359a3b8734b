package runtime

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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

// handling is st for what sub has been sent.
func (r *subscriber) handling(st lifetimes, sub *subscription) lifetimes {
	if !r.finishes(sub) {
		return st
	}
	return lifetimes{r.finishing.until, st.work}
}

func (r *subscriber) finishes(sub *subscription) bool {
	return r.finishing != nil && r.handBackCosts(sub)
}

// cancelAtStop sees to it that nothing more comes while the reader waits for a slot.
func (r *subscriber) cancelAtStop(st lifetimes, sub *subscription) {
	select {
	case <-st.intake.Done():
		r.stopReading(sub)
	case <-sub.ctx.Done():
	}
}

// asked is done when nothing may wait at an open breaker any more.
func (r *subscriber) asked(st lifetimes) context.Context {
	if r.finishing == nil {
		return st.intake
	}
	return r.finishing.asked
}

// handBackCosts reports whether a message that is handed back loses an attempt, or
// may have no queue to go to.
func (r *subscriber) handBackCosts(sub *subscription) bool {
	return r.q.GoesUnused || r.handBackCounts(sub)
}

func (r *subscriber) handBackCounts(sub *subscription) bool {
	return r.q.Policy.Type == settle.Quorum && sub.session != nil && sub.session.conn != nil && !handsBackFree(sub.session.conn)
}

// retire closes the channel once the deliveries that came on it are settled; until
// then they can be, even when the server has ended the consumer.
func (r *subscriber) retire(sub *subscription) {
	sub.unsettled.Wait()
	r.returnUnread(sub)
	sub.end(errChannelClosed)
}

// returnUnread hands back what a quorum queue has sent to a consumer after its
// cancel was confirmed: the client library drops it, and the end of the channel
// would count an attempt. Everything that was read is settled by now, so that all
// that is left on the channel (tag 0, multiple) is that. Before 4.3 it counts
// either way.
func (r *subscriber) returnUnread(sub *subscription) {
	if r.q.Policy.Type == settle.Quorum && sub.err() == nil && handsBackFree(sub.session.conn) {
		_ = sub.ch.Nack(0, true, true) // the channel is about to end
	}
}

// stopReading cancels the consumer because the run stops, and says what that costs.
func (r *subscriber) stopReading(sub *subscription) bool {
	if r.q.GoesUnused {
		sub.going.Do(func() { r.reportGoing(sub) })
	}
	return r.stopConsuming(sub)
}

// stopSuccessor cancels, in a stop, the consumer that has followed sub: what sub
// hands back must not come to that one, and be handed back once more.
func (r *subscriber) stopSuccessor(sub *subscription) {
	latest := r.latest.Load()
	if r.finishing == nil || r.finishing.asked.Err() == nil || latest == nil || latest == sub {
		return
	}
	r.stopReading(latest)
}

// reportGoing says how many messages may go with the queue.
func (r *subscriber) reportGoing(sub *subscription) {
	q, err := ask(sub.session, nil, func() (amqp.Queue, error) {
		ch, err := sub.session.conn.Channel()
		if err != nil {
			return amqp.Queue{}, err
		}
		defer ch.Close()
		return ch.QueueDeclarePassive(r.queue, false, false, false, false, nil)
	})
	switch {
	case err != nil:
		r.log.Warn("stopping; the broker deletes this queue, with what it holds, when nobody consumes it", logkey.Error, err)
	case q.Consumers <= 1:
		r.log.Warn("stopping the last consumer; the broker deletes this queue, with what it holds, when nobody consumes it", logkey.Count, q.Messages)
	}
}
