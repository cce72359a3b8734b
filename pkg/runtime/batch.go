package runtime

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/keyorder"
)

// Batch collects deliveries for one call of a [hooks.BatchHook]: up to Size of
// them, or as many as have come within Wait of the first. While no slot is free
// a batch goes on growing. The zero Batch collects nothing.
type Batch struct {
	Size int // at least 1, at most 65535
	Wait time.Duration
}

// readBatches is what read is for a queue with batches. A batch that is not full
// when intake ends runs at once, if a slot is free.
func (c *consumer) readBatches(st stages, sub *subscription, deliveries <-chan amqp.Delivery) {
	b := keyorder.NewCollector[*delivery](c.q.Batch.Size, c.q.Batch.Wait)
	if c.caution.alone {
		b.Limit(1)
	}
	stopping, lost := st.intake.Done(), sub.ctx.Done()
	finishes := c.finishes(sub)
	st = c.handling(st, sub)
	for {
		c.fill(st, sub, b)
		in, slots := deliveries, c.slots
		if b.Full() {
			in = nil
		}
		if !b.Due() {
			slots = nil
		}
		select {
		case <-stopping:
			stopping = nil
			if finishes && c.stopReading(sub) {
				continue // with what it has been sent
			}
			c.lastBatch(st, b)
			answered := c.stopConsuming(sub)
			c.endAll(c.order.Evict(sub.brought))
			if !answered {
				return
			}
		case <-lost:
			lost = nil
			c.abandon(b.Take())
			c.endAll(c.order.Evict(sub.brought))
		case <-c.order.Freed(): // there may be something to fill the batch with
		case <-b.Waited():
			b.Expire()
		case slots <- struct{}{}:
			c.runBatch(st, b.Take())
		case raw, open := <-in:
			if !open {
				c.endAll(c.order.Evict(sub.brought))
				c.finishBatch(st, sub, b)
				return
			}
			change := c.caution.meet(&raw)
			if change == retreats {
				b.Limit(1)
			}
			goesOn := change == unchanged || c.changePrefetch(sub)
			c.collect(st, b, c.receive(sub, raw))
			if !goesOn {
				c.endAll(c.order.Evict(sub.brought))
				c.finishBatch(st, sub, b)
				return
			}
		}
	}
}

// collect adds d to the batch, or lets it wait for its key, unless no batch may
// start any more.
func (c *consumer) collect(st stages, b *keyorder.Collector[*delivery], d *delivery) {
	if c.setAside(st, d) || c.ackedAgain(st, d) {
		return
	}
	d.key = c.q.Order.key(c.q.reader(), d)
	at := keyorder.Refused
	if !c.over(st, d.sub) {
		at = c.order.Join(b, d, func() bool { return noMore(st, d.sub) })
	}
	switch at {
	case keyorder.First:
		b.Add(d)
	case keyorder.Refused:
		c.endAll([]*delivery{d})
	}
}

// over reports whether nothing that came by sub may start any more.
func (c *consumer) over(st stages, sub *subscription) bool {
	return st.stopping() || sub.err() != nil || sub.resting()
}

// lastBatch runs what has been collected if that is possible without waiting.
func (c *consumer) lastBatch(st stages, b *keyorder.Collector[*delivery]) {
	ds := b.Take()
	if len(ds) == 0 {
		return
	}
	select {
	case c.slots <- struct{}{}:
		c.runBatch(st, ds)
	default:
		c.abandon(ds)
	}
}

// finishBatch ends the batch of a consumer that gets nothing more; its channel may
// live on.
func (c *consumer) finishBatch(st stages, sub *subscription, b *keyorder.Collector[*delivery]) {
	ds := b.Take()
	if len(ds) == 0 {
		return
	}
	if c.slot(st, sub) {
		c.runBatch(st, ds)
		return
	}
	c.abandon(ds)
}

// abandon ends a batch that no hook will see.
func (c *consumer) abandon(ds []*delivery) {
	c.order.Release(keyorder.Keys(ds))
	c.endAll(ds)
}

// endAll ends deliveries that no hook will see.
func (c *consumer) endAll(ds []*delivery) {
	for _, d := range ds {
		c.unseen(d)
		c.letGo(d)
	}
}

func (c *consumer) runBatch(st stages, ds []*delivery) {
	c.handlers.Go(func() { c.handleBatch(st, ds) })
}

// fill adds to the batch what has waited for its key. A queue that hands back
// what it has starts nothing that came later than that.
func (c *consumer) fill(st stages, sub *subscription, b *keyorder.Collector[*delivery]) {
	if c.q.Order.By != "" && !c.over(st, sub) {
		c.order.Fill(b)
	}
}
