package runtime

import "slices"

// Batches of an ordered queue. A key belongs to one batch at a time, from the
// moment that its first delivery is collected until the hook has answered, and
// that batch may hold several of its deliveries. Others wait; once the key is
// free, the reader of deliveries moves them into the batch that it is filling.
// Only the reader lets deliveries wait, and all that wait have come by its
// subscription, so a batch never has deliveries of two.

// claim notes that the batch has a delivery of key.
func (b *collector) claim(key string) {
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	b.keys[key] = true
}

// join gives d, which has just come in, a place: in b, unless another batch has
// its key. The caller adds it.
func (o *order) join(st stages, b *collector, d *delivery) place {
	if b.keys[d.key] {
		return first // what waits for a key of b has found it full, and then nothing is read
	}
	at := o.enter(st, d)
	if at == first && d.key != "" {
		b.claim(d.key)
	}
	return at
}

// fill moves what waits for a free key into b, as far as there is room. What is
// left of a key waits for the end of b.
func (o *order) fill(b *collector) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.free) > 0 && !b.full() {
		key := o.free[0]
		o.free = o.free[1:]
		queue := o.waiting[key]
		if len(queue) == 0 { // taken out meanwhile
			delete(o.waiting, key)
			continue
		}
		b.claim(key)
		n := min(len(queue), b.batch.Size-len(b.held))
		for _, d := range queue[:n] {
			b.add(d)
		}
		o.waiting[key] = slices.Delete(queue, 0, n)
	}
}

// release ends a batch's turn of its keys.
func (o *order) release(keys []string) {
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

// keysOf returns the keys of ds, each once.
func keysOf(ds []*delivery) []string {
	var keys []string
	for _, d := range ds {
		if d.key != "" {
			keys = append(keys, d.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// fill adds to the batch what has waited for its key. A queue that hands back
// what it has starts nothing that came later than that.
func (c *consumer) fill(st stages, sub *subscription, b *collector) {
	if c.q.Order.By != "" && !c.over(st, sub) {
		c.order.fill(b)
	}
}
