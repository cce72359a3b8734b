package main

import "slices"

// An order is one message of the demo and what must become of it.
type order struct {
	id, queue string
	key       string // routing key at the exchange "shop"
	body      string
	story     string // what is wrong with it, for the table
	attempts  int
	end       string
}

// The ways an order may end.
const (
	acked   = "acked"
	dropped = "dropped"
	spent   = "dead-lettered"
)

// orders has something good, flaky, bad and hopeless for every queue. The
// handlers of examples/orders.yaml decide by sku, card and mood.
var orders = []order{
	{"order-1", "orders", "order.new", `{"sku":"A-1"}`, "good", 1, acked},
	{"order-2", "orders", "order.new", `{"sku":"RARE"}`, "stock not counted at first", 2, acked},
	{"order-3", "orders", "order.new", `{"sku":""}`, "bad: no SKU", 1, dropped},
	{"order-4", "orders", "order.new", `{"sku":"SOLD-OUT"}`, "hopeless: sold out", 3, spent},
	{"payment-1", "payments", "payment.due", `{"card":"4242"}`, "good", 1, acked},
	{"payment-2", "payments", "payment.due", `{"card":"SLOW"}`, "bank busy, twice", 3, acked},
	{"payment-3", "payments", "payment.due", `{"card":""}`, "bad: no card", 1, dropped},
	{"payment-4", "payments", "payment.due", `{"card":"BROKEN"}`, "hopeless: bank never answers", 3, spent},
	{"note-1", "notifications", "order.notify", `{"mood":"good"}`, "good", 1, acked},
	{"note-2", "notifications", "order.notify", `{"mood":"flaky"}`, "503 at first", 2, acked},
	{"note-3", "notifications", "order.notify", `{"mood":"bad"}`, "bad: 422", 1, dropped},
	{"note-4", "notifications", "order.notify", `{"mood":"hopeless"}`, "hopeless: always 500", 3, spent},
}

// A queue is one of the spec's.
type queue struct{ name, kind string }

var queues = []queue{{"orders", "classic"}, {"payments", "quorum"}, {"notifications", "classic"}}

// inDeadLetter reports whether the order must lie in its queue's dead-letter
// queue. A quorum queue with the pair max_attempts and dead_letter sends what is
// dropped there, too: the pair is its dead-letter route for everything.
func (o order) inDeadLetter() bool {
	return o.end == spent || o.end == dropped && slices.Contains(queues, queue{o.queue, "quorum"})
}
