package runtime

import (
	"context"
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestTheKeyOfADeliveryComesFromWhereTheQueueSays(t *testing.T) {
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
			if got := tt.order.key(message.Reader{Queue: "q", Type: settle.Classic}, &delivery{Delivery: d}); got != tt.want {
				t.Errorf("key() = %q, want %q", got, tt.want)
			}
		})
	}
}

// keyed is a delivery of a key, on a subscription of its own.
func keyed(key string) *delivery {
	d := unsentDelivery()
	d.key = key
	return d
}

func TestOneDeliveryOfAKeyHasTheTurnAndTheOthersFollowInOrder(t *testing.T) {
	t.Parallel()
	o := newOrder()
	st := stages{t.Context(), t.Context()}
	a, b := []*delivery{keyed("a"), keyed("a"), keyed("a")}, keyed("b")
	if p := o.enter(st, a[0]); p != first {
		t.Fatalf("the first of a key: %v", p)
	}
	for _, d := range a[1:] {
		if p := o.enter(st, d); p != behind {
			t.Fatalf("another of the key: %v", p)
		}
	}
	if p := o.enter(st, b); p != first {
		t.Errorf("the first of another key: %v", p)
	}
	for i := range 2 {
		if p := o.enter(st, keyed("")); p != first {
			t.Errorf("delivery %d without a key: %v", i, p)
		}
	}
	if d := o.leave(a[0]); d != a[1] {
		t.Error("the turn does not go to the one that came in second")
	}
	if d := o.leave(a[1]); d != a[2] {
		t.Error("the turn does not go to the one that came in third")
	}
	if d := o.leave(a[2]); d != nil {
		t.Error("somebody has the turn although nobody waits")
	}
	o.leave(b)
	if len(o.waiting) != 0 {
		t.Errorf("%d keys are kept after their last delivery", len(o.waiting))
	}
}

func TestNothingWaitsForItsTurnOnceItCannotRun(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	lost := keyed("k")
	lost.sub.cancel(errChannelClosed)
	for _, tt := range []struct {
		name string
		st   stages
		d    *delivery
	}{
		{"because the process stops", stages{stopped, t.Context()}, keyed("k")},
		{"because its channel has ended", stages{t.Context(), t.Context()}, lost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOrder()
			o.enter(stages{t.Context(), t.Context()}, keyed("k"))
			if p := o.enter(tt.st, tt.d); p != refused {
				t.Errorf("enter() = %v, want refused", p)
			}
		})
	}
}

func TestEvictingASubscriptionLeavesTheOthersInOrder(t *testing.T) {
	t.Parallel()
	o := newOrder()
	st := stages{t.Context(), t.Context()}
	old, young := unsentDelivery().sub, unsentDelivery().sub
	on := func(s *subscription, key string) *delivery { return &delivery{sub: s, key: key} }
	running := on(old, "k")
	o.enter(st, running)
	gone := []*delivery{on(old, "k"), on(old, "k")}
	stays := []*delivery{on(young, "k"), on(young, "k")}
	for _, d := range slices.Concat(gone, stays) {
		o.enter(st, d)
	}
	if out := o.evict(old); !slices.Equal(out, gone) {
		t.Errorf("evict() returned %d deliveries, want the 2 of the subscription", len(out))
	}
	if d := o.leave(running); d != stays[0] {
		t.Error("the next turn does not go to the first that stays")
	}
	if d := o.leave(stays[0]); d != stays[1] {
		t.Error("the turn after it does not go to the second")
	}
}
