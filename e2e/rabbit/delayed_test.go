package rabbit

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestStandInHoldsMessagesAsTheDelayedMessagePluginDoes(t *testing.T) {
	t.Parallel()
	node, err := Start(t.Context(), Options{Plugins: []string{DelayedMessage}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Stop() })
	ch := delayedQueue(t, node, "orders")
	returns := ch.NotifyReturn(make(chan amqp.Return, 4))
	got, err := ch.ConsumeWithContext(t.Context(), "orders", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	publish := func(id string, delay int64) {
		msg := amqp.Publishing{MessageId: id, Headers: amqp.Table{"x-delay": delay, "x-other": "kept"}}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "orders.delay", "orders", true, false, msg)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := confirm.WaitContext(t.Context()); err != nil || !ok {
			t.Errorf("%s: confirmed = %v, %v; want a confirm even while it is held", id, ok, err)
		}
	}
	publish("long", 6000)
	publish("short", 500)
	publish("too long to hold", 1<<32)

	for i, want := range []struct {
		id    string
		delay int64
		after time.Duration
	}{{"too long to hold", 1 << 32, 0}, {"short", -500, 500 * time.Millisecond}, {"long", -6000, 6 * time.Second}} {
		d := receive(t, got)
		delay, _ := d.Headers["x-delay"].(int64)
		if d.MessageId != want.id || delay != want.delay || d.Headers["x-other"] != "kept" {
			t.Errorf("delivery %d = %q with headers %v; want %q with x-delay %d", i, d.MessageId, d.Headers, want.id, want.delay)
		}
		if took := time.Since(began); took < want.after {
			t.Errorf("%q came after %v, want no sooner than %v", want.id, took, want.after)
		}
	}
	for _, id := range []string{"long", "short"} {
		if r := receive(t, returns); r.MessageId != id || r.ReplyCode != amqp.NoRoute {
			t.Errorf("returned %q with %d; want the held, mandatory %q with %d", r.MessageId, r.ReplyCode, id, amqp.NoRoute)
		}
	}
	err = ch.ExchangeDeclare("odd", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "no such type"})
	if refused, ok := err.(*amqp.Error); !ok || refused.Code != amqp.PreconditionFailed {
		t.Errorf("declare with an unknown x-delayed-type: %v, want 406", err)
	}
}

// delayedQueue declares a queue bound to a delayed exchange, on a channel that
// confirms.
func delayedQueue(t *testing.T, node *Node, queue string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare(queue+".delay", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "direct"}); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(queue, queue, queue+".delay", false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatal("the channel closed")
		}
		return v
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing came within 2 minutes")
	}
	panic("unreachable")
}
