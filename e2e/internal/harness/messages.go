package harness

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Channel opens a channel that closes with the test. Use a fresh one after an
// error: RabbitMQ closes a channel with the first.
func (b *Broker) Channel() *amqp.Channel {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	return ch
}

// Publish sends messages to an exchange and waits until all are confirmed.
func (b *Broker) Publish(exchange, key string, messages ...amqp.Publishing) {
	b.t.Helper()
	ch := b.Channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, len(messages)))
	var confirms []*amqp.DeferredConfirmation
	for _, m := range messages {
		c, err := ch.PublishWithDeferredConfirmWithContext(b.t.Context(), exchange, key, true, false, m)
		if err != nil {
			b.t.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if ok, err := c.WaitContext(b.t.Context()); err != nil || !ok {
			b.t.Fatalf("publish to %q with key %q: confirmed = %v, %v", exchange, key, ok, err)
		}
	}
	select {
	case r := <-returned:
		b.t.Fatalf("message %q to %q with key %q reached no queue", r.MessageId, exchange, key)
	default:
	}
}

// Take removes and returns the messages of a queue until it is empty.
func (b *Broker) Take(queue string) []amqp.Delivery {
	b.t.Helper()
	ch := b.Channel()
	defer ch.Close()
	var all []amqp.Delivery
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			b.t.Fatalf("read queue %q: %v", queue, err)
		}
		if !ok {
			return all
		}
		all = append(all, d)
	}
}

// TakeN waits for n messages in a queue, takes everything there and fails when
// it is not n. A server moves a spent quorum message a moment after the reject.
func (b *Broker) TakeN(queue string, n int) []amqp.Delivery {
	b.t.Helper()
	var all []amqp.Delivery
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		all = append(all, b.Take(queue)...)
		if len(all) >= n || time.Now().After(end) {
			break
		}
	}
	if len(all) != n {
		b.t.Fatalf("queue %q holds %d messages, want %d", queue, len(all), n)
	}
	return all
}

// Ready returns how many messages of a queue are ready for delivery.
func (b *Broker) Ready(queue string) int {
	b.t.Helper()
	ch := b.Channel()
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	if err != nil {
		b.t.Fatalf("look at queue %q: %v", queue, err)
	}
	return q.Messages
}

// IDs returns the message ids in the order of the deliveries.
func IDs(ds []amqp.Delivery) []string {
	ids := make([]string, 0, len(ds))
	for _, d := range ds {
		ids = append(ids, d.MessageId)
	}
	return ids
}
