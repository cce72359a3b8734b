package runtime

import (
	"fmt"

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

// noMore reports whether nothing may wait for its turn any more that came by sub.
func noMore(st stages, sub *subscription) bool { return st.stopping() || sub.err() != nil }

// next ends d's turn: its slot goes to the one that waited for it, or is free.
// What waits has come in before anything that the reader has in hand, so nothing
// is overtaken by it.
func (c *consumer) next(st stages, d *delivery) {
	for next, ok := c.order.Leave(d); ok; next, ok = c.order.Leave(next) {
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
	for _, d := range c.order.Evict(sub.brought) {
		c.unseen(d)
		c.letGo(d)
	}
}
