package runtime

import (
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/keyorder"
)

// batchReader reads the deliveries of one subscription of a queue with batches.
type batchReader struct {
	*consumer
	st    lifetimes
	sub   *subscription
	batch *keyorder.Collector[*delivery] // that is being filled
}

// readBatches is what read is for a queue with batches. A batch that is not full
// when intake ends runs at once, if a slot is free.
func (c *consumer) readBatches(st lifetimes, sub *subscription, deliveries <-chan amqp.Delivery) {
	r := &batchReader{
		consumer: c,
		st:       c.handling(st, sub),
		sub:      sub,
		batch:    keyorder.NewCollector[*delivery](c.q.Batch.Size, c.q.Batch.Wait),
	}
	if c.caution.alone {
		r.batch.Limit(1)
	}
	r.read(st.intake.Done(), deliveries)
}

func (r *batchReader) read(stopping <-chan struct{}, deliveries <-chan amqp.Delivery) {
	lost := r.sub.ctx.Done()
	finishes := r.finishes(r.sub)
	for {
		r.fill()
		in, slots := deliveries, r.slots
		if r.batch.Full() {
			in = nil
		}
		if !r.batch.Due() {
			slots = nil
		}
		select {
		case <-stopping:
			stopping = nil
			if finishes && r.stopReading(r.sub) {
				continue // with what it has been sent
			}
			r.runIfFree()
			answered := r.stopConsuming(r.sub)
			r.evict()
			if !answered {
				return
			}
		case <-lost:
			lost = nil
			r.abandon(r.batch.Take())
			r.evict()
		case <-r.order.Freed(): // there may be something to fill the batch with
		case <-r.batch.Waited():
			r.batch.Expire()
		case slots <- struct{}{}:
			r.run(r.batch.Take())
		case raw, open := <-in:
			if !open || !r.take(raw) {
				r.evict()
				r.runLast()
				return
			}
		}
	}
}

// take sees to what a delivery means for the prefetch, and collects it. It reports
// false when no further ones are to be read.
func (r *batchReader) take(raw amqp.Delivery) (goesOn bool) {
	change := r.caution.meet(&raw)
	if change == retreats {
		r.batch.Limit(1)
	}
	goesOn = change == unchanged || r.changePrefetch(r.sub)
	r.collect(r.receive(r.sub, raw))
	return goesOn
}

// collect adds d to the batch, or lets it wait for its key, unless no batch may
// start any more.
func (r *batchReader) collect(d *delivery) {
	if r.setAside(r.st, d) || r.ackedAgain(r.st, d) {
		return
	}
	d.key = r.q.Order.key(r.q.reader(), &d.Delivery)
	at := keyorder.Refused
	if r.mayStart() {
		at = r.order.Join(r.batch, d, func() bool { return noMore(r.st, d.sub) })
	}
	switch at {
	case keyorder.First:
		r.batch.Add(d)
	case keyorder.Refused:
		r.endAll([]*delivery{d})
	}
}

// mayStart reports whether what came by the subscription may still start.
func (r *batchReader) mayStart() bool { return !noMore(r.st, r.sub) && !r.sub.resting() }

// fill adds to the batch what has waited for its key. A queue that hands back
// what it has starts nothing that came later than that.
func (r *batchReader) fill() {
	if r.q.Order.By != "" && r.mayStart() {
		r.order.Fill(r.batch)
	}
}

// runIfFree runs what has been collected if that is possible without waiting.
func (r *batchReader) runIfFree() {
	ds := r.batch.Take()
	if len(ds) == 0 {
		return
	}
	select {
	case r.slots <- struct{}{}:
		r.run(ds)
	default:
		r.abandon(ds)
	}
}

// runLast ends the batch of a consumer that gets nothing more; its channel may
// live on.
func (r *batchReader) runLast() {
	ds := r.batch.Take()
	if len(ds) == 0 {
		return
	}
	if r.slot(r.st, r.sub) {
		r.run(ds)
		return
	}
	r.abandon(ds)
}

func (r *batchReader) run(ds []*delivery) {
	r.handlers.Go(func() { r.handleBatch(r.st, ds) })
}

// evict ends what waits for its key.
func (r *batchReader) evict() { r.endAll(r.order.Evict(r.sub.brought)) }

// abandon ends a batch that no hook will see.
func (r *batchReader) abandon(ds []*delivery) {
	r.order.Release(keyorder.Keys(ds))
	r.endAll(ds)
}

// endAll ends deliveries that no hook will see.
func (c *consumer) endAll(ds []*delivery) {
	for _, d := range ds {
		c.endUnseen(d)
		c.release(d)
	}
}
