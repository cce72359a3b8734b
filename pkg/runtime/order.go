package runtime

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rsctl/rsctl/pkg/runtime/message"
)

// OrderKey says what the deliveries share that must run one at a time.
type OrderKey string

// The order keys.
const (
	OrderByHeader        OrderKey = "header"
	OrderByRoutingKey    OrderKey = "routing_key" // of the first delivery, on every attempt
	OrderByCorrelationID OrderKey = "correlation_id"
)

// Order makes the deliveries that share a key run one at a time, in the order
// they came in; the zero Order orders nothing. It holds within one process. A
// delivery without the key, or with an empty one, is not ordered. A message that
// is retried lets the next one of its key run, and comes again later. With a
// [Batch], a call may have several deliveries of one key, in their order.
type Order struct {
	By     OrderKey
	Header string // with OrderByHeader
}

// key returns the key of d; "" when it has none.
func (o Order) key(in message.Reader, d *delivery) string {
	switch o.By {
	case OrderByHeader:
		return keyText(d.Headers[o.Header])
	case OrderByRoutingKey:
		return in.Read(&d.Delivery).RoutingKey
	case OrderByCorrelationID:
		return d.CorrelationId
	}
	return ""
}

func keyText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// order holds the deliveries that wait for one with the same key. A key costs an
// entry while one of its deliveries is in hand, and no goroutine.
type order struct {
	mu      sync.Mutex
	waiting map[string][]*delivery // a key is there while one of its deliveries runs

	// With batches:
	free  []string      // keys of waiting that nothing runs of
	freed chan struct{} // has one when free may have become longer
}

func newOrder() *order {
	return &order{waiting: map[string][]*delivery{}, freed: make(chan struct{}, 1)}
}

// place is what became of a delivery that came in.
type place int

const (
	first   place = iota // it may run
	behind               // it waits, and leave will return it
	refused              // nothing may wait any more
)

// enter gives d a place.
func (o *order) enter(st stages, d *delivery) place {
	if d.key == "" {
		return first
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	queue, running := o.waiting[d.key]
	switch {
	case !running:
		o.waiting[d.key] = nil
		return first
	case st.stopping() || d.sub.err() != nil:
		return refused
	}
	o.waiting[d.key] = append(queue, d)
	return behind
}

// leave ends d's turn and returns the delivery whose turn it is now; nil when
// there is none.
func (o *order) leave(d *delivery) *delivery {
	if d.key == "" {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.waiting[d.key]
	if len(queue) == 0 {
		delete(o.waiting, d.key)
		return nil
	}
	next := queue[0]
	queue[0] = nil // its memory must not live as long as the key
	o.waiting[d.key] = queue[1:]
	return next
}

// evict takes out, in no order of keys, what waits and came by sub.
func (o *order) evict(sub *subscription) []*delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []*delivery
	for key, queue := range o.waiting {
		o.waiting[key] = slices.DeleteFunc(queue, func(d *delivery) bool {
			if d.sub == sub {
				out = append(out, d)
			}
			return d.sub == sub
		})
	}
	return out
}

// next ends d's turn: its slot goes to the one that waited for it, or is free.
// What waits has come in before anything that the reader has in hand, so nothing
// is overtaken by it.
func (c *consumer) next(st stages, d *delivery) {
	for next := c.order.leave(d); next != nil; next = c.order.leave(next) {
		if !st.stopping() {
			c.run(st, next)
			return
		}
		c.unseen(next)
		c.letGo(next)
	}
	<-c.slots
}

// clearWaiting ends what waits for its turn once it cannot run any more: handed
// back when the process stops, lost with its channel.
func (c *consumer) clearWaiting(st stages, sub *subscription) {
	select {
	case <-st.intake.Done():
	case <-sub.ctx.Done():
	}
	for _, d := range c.order.evict(sub) {
		c.unseen(d)
		c.letGo(d)
	}
}
