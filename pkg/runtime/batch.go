package runtime

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Batch collects deliveries for one call of a [hooks.BatchHook]: up to Size of
// them, or as many as have come within Wait of the first. While no slot is free
// a batch goes on growing. The zero Batch collects nothing.
type Batch struct {
	Size int // at least 1, at most 65535
	Wait time.Duration
}

// collector is the batch that a subscription is filling.
type collector struct {
	batch Batch
	held  []*delivery
	keys  map[string]bool // of held: nothing else that runs has one of them
	timer *time.Timer     // since the first delivery came in
	due   bool
}

func (b *collector) add(d *delivery) {
	if len(b.held) == 0 {
		b.timer = time.NewTimer(b.batch.Wait - time.Since(d.arrived))
	}
	b.held = append(b.held, d)
	b.due = b.due || b.full()
}

func (b *collector) full() bool { return len(b.held) >= b.batch.Size }

// take empties the collector.
func (b *collector) take() []*delivery {
	ds := b.held
	if b.timer != nil {
		b.timer.Stop()
	}
	*b = collector{batch: b.batch}
	return ds
}

// waited is ready once the first delivery has waited long enough.
func (b *collector) waited() <-chan time.Time {
	if len(b.held) == 0 || b.due {
		return nil
	}
	return b.timer.C
}

// readBatches is what read is for a queue with batches. A batch that is not full
// when intake ends runs at once, if a slot is free.
func (c *consumer) readBatches(st stages, sub *subscription, deliveries <-chan amqp.Delivery) {
	b := &collector{batch: c.q.Batch}
	if c.caution.alone {
		b.batch.Size = 1
	}
	stopping, lost := st.intake.Done(), sub.ctx.Done()
	finishes := c.finishes(sub)
	st = c.handling(st, sub)
	for {
		c.fill(st, sub, b)
		in, slots := deliveries, c.slots
		if b.full() {
			in = nil
		}
		if !b.due {
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
			c.endAll(c.order.evict(sub))
			if !answered {
				return
			}
		case <-lost:
			lost = nil
			c.abandon(b.take())
			c.endAll(c.order.evict(sub))
		case <-c.order.freed: // there may be something to fill the batch with
		case <-b.waited():
			b.due = true
		case slots <- struct{}{}:
			c.runBatch(st, b.take())
		case raw, open := <-in:
			if !open {
				c.endAll(c.order.evict(sub))
				c.finishBatch(st, sub, b)
				return
			}
			change := c.caution.meet(&raw)
			if change == retreats {
				b.batch.Size = 1
			}
			goesOn := change == unchanged || c.changePrefetch(sub)
			c.collect(st, b, c.receive(sub, raw))
			if !goesOn {
				c.endAll(c.order.evict(sub))
				c.finishBatch(st, sub, b)
				return
			}
		}
	}
}

// collect adds d to the batch, or lets it wait for its key, unless no batch may
// start any more.
func (c *consumer) collect(st stages, b *collector, d *delivery) {
	if c.setAside(st, d) || c.ackedAgain(st, d) {
		return
	}
	d.key = c.q.Order.key(c.q.reader(), d)
	at := refused
	if !c.over(st, d.sub) {
		at = c.order.join(st, b, d)
	}
	switch at {
	case first:
		b.add(d)
	case refused:
		c.endAll([]*delivery{d})
	}
}

// over reports whether nothing that came by sub may start any more.
func (c *consumer) over(st stages, sub *subscription) bool {
	return st.stopping() || sub.err() != nil || sub.resting()
}

// lastBatch runs what has been collected if that is possible without waiting.
func (c *consumer) lastBatch(st stages, b *collector) {
	ds := b.take()
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
func (c *consumer) finishBatch(st stages, sub *subscription, b *collector) {
	ds := b.take()
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
	c.order.release(keysOf(ds))
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
