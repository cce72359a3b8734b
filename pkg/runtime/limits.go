package runtime

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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
func (o Order) key(in message.Reader, d *amqp.Delivery) string {
	switch o.By {
	case OrderByHeader:
		return keyText(d.Headers[o.Header])
	case OrderByRoutingKey:
		return in.Read(d).RoutingKey
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

// Batch collects deliveries for one call of a [hooks.BatchHook]: up to Size of
// them, or as many as have come within Wait of the first. While no slot is free
// a batch goes on growing. The zero Batch collects nothing.
type Batch struct {
	Size int // at least 1, at most 65535
	Wait time.Duration
}

// Breaker pauses a queue after Failures retries or failed hooks in a row, with no
// ack or drop between them. After Cooldown one delivery tries the hook, and again
// after each that fails. The zero Breaker never does.
type Breaker struct {
	Failures int
	Cooldown time.Duration
}
