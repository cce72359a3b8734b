package runtime

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestOrderTakesTheKeyFromWhereTheQueueSays(t *testing.T) {
	t.Parallel()
	d := amqp.Delivery{CorrelationId: "c", Exchange: "", RoutingKey: "q", Headers: amqp.Table{
		"text": "k", "bytes": []byte("k"), "number": int32(7), "zero": int64(0), "nothing": nil,
		message.HeaderExchange: "orders", message.HeaderRoutingKey: "orders.new", message.HeaderQueue: "q",
	}}
	for _, tt := range []struct {
		name  string
		order Order
		want  string
	}{
		{"no order gives no key", Order{}, ""},
		{"a text header", Order{OrderByHeader, "text"}, "k"},
		{"bytes are the same key as text", Order{OrderByHeader, "bytes"}, "k"},
		{"a number", Order{OrderByHeader, "number"}, "7"},
		{"zero is a key", Order{OrderByHeader, "zero"}, "0"},
		{"a header without a value is no key", Order{OrderByHeader, "nothing"}, ""},
		{"nor is one that is missing", Order{OrderByHeader, "other"}, ""},
		{"a retried copy has the routing key of its first delivery", Order{By: OrderByRoutingKey}, "orders.new"},
		{"the correlation id", Order{By: OrderByCorrelationID}, "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.order.key(message.Reader{Queue: "q", Type: settle.Classic}, &d); got != tt.want {
				t.Errorf("key() = %q, want %q", got, tt.want)
			}
		})
	}
}
