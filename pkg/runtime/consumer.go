package runtime

import (
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/keyorder"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// consumer handles one queue for the whole run. Its concurrency belongs to the
// queue, not to a connection, so a reconnect cannot double it.
type consumer struct {
	*caller

	slots  chan struct{}              // one per running hook
	order  *keyorder.Order[*delivery] // who waits for another delivery of the same key
	spare  chan *delivery             // to goroutines that have nothing to do
	inHand atomic.Int64               // the same, to be read
}

func newConsumer(q Queue, s shared) *consumer {
	s.log = s.log.With(logkey.Queue, q.Policy.Queue)
	if q.Prefetch < q.Batch.Size {
		s.log.Warn("prefetch raised to the size of a batch, which would never be full", logkey.Count, q.Batch.Size)
		q.Prefetch = q.Batch.Size
	}
	c := &consumer{
		slots: make(chan struct{}, max(q.Concurrency, 1)),
		order: keyorder.New[*delivery](),
		spare: make(chan *delivery),
	}
	c.caller = newCaller(newSubscriber(newSettler(q, s, c)))
	return c
}

// read hands deliveries to handlers until the deliveries end. When intake is
// done it cancels the consumer and hands back what has not started.
func (c *consumer) read(st lifetimes, sub *subscription, deliveries <-chan amqp.Delivery) {
	stopping := st.intake.Done()
	st = c.handling(st, sub)
	var only loner
	for {
		select {
		case <-stopping:
			stopping = nil
			if !c.stopReading(sub) {
				return
			}
		case <-only.ran:
			only.wait()
		case <-only.late:
			only = loner{}
			if !c.changePrefetch(sub) {
				return
			}
		case raw, open := <-deliveries:
			if !open || !c.meet(st, sub, raw, deliveries, &only) {
				return
			}
		}
	}
}

// take starts a handler, or hands the delivery back. One that has to wait for
// another of the same key takes no slot before its turn.
func (c *consumer) take(st lifetimes, d *delivery) {
	if c.setAside(st, d) || c.ackedAgain(st, d) {
		return
	}
	d.key = c.q.Order.key(c.q.reader(), &d.Delivery)
	switch c.order.Enter(d, func() bool { return noMore(st, d.sub) }) {
	case keyorder.Behind:
		return
	case keyorder.Refused:
	case keyorder.First:
		if c.slot(st, d.sub) {
			c.run(st, d)
			return
		}
		c.order.Leave(d) // nobody has come in behind it: only the reader of deliveries lets them in
	}
	c.endUnseen(d)
	c.release(d)
}

// endUnseen ends a delivery that no hook will see.
func (c *consumer) endUnseen(d *delivery) {
	if d.sub.err() != nil {
		c.lose() // the broker redelivers it
		return
	}
	if !c.succeeded(d) {
		c.handBack(d)
		return
	}
	c.understand(d)
	c.settlement(lifetimes{}, d, hooks.Outcome{Verdict: hooks.Ack}).finish(settle.Ack{})
}

// ackedAgain ends at once, before anything that it would wait for, the redelivery
// of a message whose ack was lost: on a quorum queue each further return is an
// attempt, and a message that has succeeded must not end as a dead letter.
func (c *consumer) ackedAgain(st lifetimes, d *delivery) bool {
	if !c.succeeded(d) {
		return false
	}
	c.understand(d)
	c.conclude(st, d, hooks.Outcome{Verdict: hooks.Ack}, true)
	c.release(d)
	return true
}

// slot waits for a free one; false when nothing may start any more.
func (c *consumer) slot(st lifetimes, sub *subscription) bool {
	if st.stopping() {
		return false
	}
	select {
	case c.slots <- struct{}{}:
		return true
	case <-st.intake.Done():
	case <-sub.ctx.Done():
	}
	return false
}

// receive counts a delivery as in hand, until release.
func (c *consumer) receive(sub *subscription, raw amqp.Delivery) *delivery {
	tell(c.obs, Received{c.queue})
	c.inHand.Add(1)
	c.bodies.Received(len(raw.Body))
	sub.unsettled.Add(1)
	return &delivery{Delivery: raw, sub: sub, arrived: time.Now()}
}

func (c *consumer) release(d *delivery) {
	d.hasRun() // or never will
	d.sub.unsettled.Done()
	d.sub.polling.settled()
	c.bodies.Received(-len(d.Body))
	c.inHand.Add(-1)
}

// run handles d, which has a slot and is in hand, in the background.
func (c *consumer) run(st lifetimes, d *delivery) {
	select {
	case c.spare <- d:
	default:
		c.handlers.Go(func() { c.handleAll(st, d) })
	}
}

// handleAll handles d and then what comes while it is idle: the stack of a
// goroutine that has handled a delivery is large enough for the next one, and
// growing a new one costs as much as calling the hook.
func (c *consumer) handleAll(st lifetimes, d *delivery) {
	for {
		sub := d.sub
		c.handle(st, d)
		c.release(d)
		select {
		case d = <-c.spare:
		case <-st.intake.Done():
			return
		case <-sub.ctx.Done():
			return
		}
	}
}

// handBack returns a delivery that no hook has seen, once the consumer has been
// cancelled: else the broker would send it here again at once, and a quorum
// queue up to 4.2 counts each return as an attempt.
func (c *consumer) handBack(d *delivery) {
	c.stopConsuming(d.sub)
	c.stopSuccessor(d.sub)
	if c.handBackCounts(d.sub) {
		c.warned.rarely("messages that no handler has seen are handed back; before RabbitMQ 4.3 that costs each an attempt on a quorum queue")
	}
	err := d.handBack()
	if err == nil {
		tell(c.obs, Settled{Queue: c.queue, Ending: EndedHandedBack})
		return
	}
	c.lose()
	if d.sub.err() == nil {
		c.log.Warn("a delivery could not be handed back; the broker redelivers it", logkey.MessageID, d.MessageId, logkey.Error, err)
	}
}
