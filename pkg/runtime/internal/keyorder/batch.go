package keyorder

import (
	"slices"
	"time"
)

// Collector is the batch that a subscription is filling. It belongs to the reader
// of that subscription's deliveries; nothing else may use it. Only the reader lets
// deliveries wait, and all that wait have come by its subscription, so a batch never
// has deliveries of two.
type Collector[D Delivery] struct {
	size  int
	wait  time.Duration
	held  []D
	keys  map[string]bool // of held: nothing else that runs has one of them
	timer *time.Timer     // since the first delivery came in
	due   bool
}

// NewCollector returns an empty batch of up to size deliveries, that is due when it
// is full or its first delivery has waited for so long.
func NewCollector[D Delivery](size int, wait time.Duration) *Collector[D] {
	return &Collector[D]{size: size, wait: wait}
}

// Limit makes the batch smaller from its next delivery on.
func (b *Collector[D]) Limit(size int) { b.size = size }

// Add puts d into the batch.
func (b *Collector[D]) Add(d D) {
	if len(b.held) == 0 {
		b.timer = time.NewTimer(b.wait - time.Since(d.Arrived()))
	}
	b.held = append(b.held, d)
	b.due = b.due || b.Full()
}

// Full reports whether there is room for no other delivery.
func (b *Collector[D]) Full() bool { return len(b.held) >= b.size }

// Due reports whether the batch need not wait for further deliveries.
func (b *Collector[D]) Due() bool { return b.due }

// Waited is ready once the first delivery has waited long enough; [Collector.Expire]
// then makes the batch due. It is nil while there is nothing to wait for.
func (b *Collector[D]) Waited() <-chan time.Time {
	if len(b.held) == 0 || b.due {
		return nil
	}
	return b.timer.C
}

// Expire makes the batch due.
func (b *Collector[D]) Expire() { b.due = true }

// Take empties the batch and returns what it held.
func (b *Collector[D]) Take() []D {
	ds := b.held
	if b.timer != nil {
		b.timer.Stop()
	}
	*b = Collector[D]{size: b.size, wait: b.wait}
	return ds
}

// claim notes that the batch has a delivery of key.
func (b *Collector[D]) claim(key string) {
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	b.keys[key] = true
}

// Join gives d, which has just come in, a position: in b, unless another batch has
// its key. The caller adds it. Ended is as in [Order.Enter].
func (o *Order[D]) Join(b *Collector[D], d D, ended func() bool) Position {
	if b.keys[d.Key()] {
		return First // what waits for a key of b has found it full, and then nothing is read
	}
	at := o.Enter(d, ended)
	if key := d.Key(); at == First && key != "" {
		b.claim(key)
	}
	return at
}

// Fill moves what waits for a free key into b, as far as there is room. What is
// left of a key waits for the end of b.
func (o *Order[D]) Fill(b *Collector[D]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.free) > 0 && !b.Full() {
		key := o.free[0]
		o.free = o.free[1:]
		queue := o.waiting[key]
		if len(queue) == 0 { // taken out meanwhile
			delete(o.waiting, key)
			continue
		}
		b.claim(key)
		n := min(len(queue), b.size-len(b.held))
		for _, d := range queue[:n] {
			b.Add(d)
		}
		o.waiting[key] = slices.Delete(queue, 0, n)
	}
}

// Freed is ready when there may be something for Fill.
func (o *Order[D]) Freed() <-chan struct{} { return o.freed }

// Release ends a batch's turn of its keys.
func (o *Order[D]) Release(keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		if len(o.waiting[key]) == 0 {
			delete(o.waiting, key)
			continue
		}
		o.free = append(o.free, key)
	}
	if len(o.free) == 0 {
		return
	}
	select {
	case o.freed <- struct{}{}:
	default: // the reader is told already
	}
}

// Keys returns the keys of ds, each once.
func Keys[D Delivery](ds []D) []string {
	var keys []string
	for _, d := range ds {
		if key := d.Key(); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
