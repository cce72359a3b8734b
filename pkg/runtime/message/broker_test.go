package message_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// broker is a channel in confirm mode on the broker that the tests are given.
type broker struct {
	t    *testing.T
	conn *amqp.Connection
	ch   *amqp.Channel
	// closed brings the reason why the channel has ended.
	closed chan *amqp.Error
}

func dialBroker(t *testing.T) *broker {
	t.Helper()
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		t.Fatal("this test needs a RabbitMQ: set RSCTL_AMQP_URL, for example amqp://guest:guest@127.0.0.1:5672/")
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, conn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	if b.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	b.closed = b.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return b
}

// queue declares a queue of its own and deletes it after the test.
func (b *broker) queue(args amqp.Table) string {
	b.t.Helper()
	name := "rsctl-message-" + rand.Text()
	b.t.Cleanup(func() {
		ch, err := b.conn.Channel()
		if err != nil { // a test has ended this connection on purpose
			b = dialBroker(b.t)
			ch = b.ch
		}
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			b.t.Error(err)
		}
	})
	if _, err := b.ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		b.t.Fatal(err)
	}
	return name
}

func (b *broker) publish(queue string, p amqp.Publishing) error {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	confirm, err := b.ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, p)
	if err != nil {
		return err
	}
	acked, err := confirm.WaitContext(ctx)
	if err == nil && !acked {
		err = fmt.Errorf("not confirmed; the channel closed with: %v", <-b.closed)
	}
	return err
}

func (b *broker) mustPublish(queue string, p amqp.Publishing) {
	b.t.Helper()
	if err := b.publish(queue, p); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) consume(queue string) func() *amqp.Delivery {
	b.t.Helper()
	deliveries, err := b.ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return func() *amqp.Delivery {
		b.t.Helper()
		select {
		case d, ok := <-deliveries:
			if !ok {
				b.t.Fatal("the consumer was closed")
			}
			return &d
		case <-time.After(2 * time.Minute):
			b.t.Fatal("no delivery in 2 minutes")
		}
		return nil
	}
}

func TestBrokerKeepsOddHeadersOverCopies(t *testing.T) {
	t.Parallel()
	b := dialBroker(t)
	work := b.queue(amqp.Table{"x-queue-type": "classic", "x-max-priority": int64(10)})
	waiting := b.queue(amqp.Table{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work})
	next := b.consume(work)
	c := message.Copier{Queue: work}

	p := redeliverable(fullDelivery())
	b.mustPublish(work, p)
	d := next()
	for attempt, step := range []settle.Copy{
		{To: settle.Target{Key: work, Queue: work}, Purpose: settle.ForRetry},
		{To: settle.Target{Key: waiting, Queue: waiting, Expiration: 50 * time.Millisecond}, Purpose: settle.ForDelay},
		{To: settle.Target{Key: waiting, Queue: waiting, Expiration: 50 * time.Millisecond}, Purpose: settle.ForDelay},
		{To: settle.Target{Key: work, Queue: work}, Purpose: settle.ForRetry},
	} {
		r := message.Read(work, settle.Classic, d)
		if r.Attempt != attempt+1 || r.RoutingKey != work || r.CountProblem != "" {
			t.Fatalf("Read() = %+v on attempt %d", r, attempt+1)
		}
		step.Count = r.Attempt
		b.mustPublish(step.To.Key, c.Copy(d, r, step, message.Failure{}))
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
		d = next()
		sameAsPublished(t, p, d)
	}
	if d.Expiration != p.Expiration {
		t.Errorf("expiration %q after waiting twice, want %q again", d.Expiration, p.Expiration)
	}
}

// redeliverable is d as a producer could publish it: without what only a broker
// adds or only a user of that name may send.
func redeliverable(d *amqp.Delivery) amqp.Publishing {
	p := orders.Bare(d)
	p.ReplyTo, p.Expiration = "answers", "60000"
	return p
}

func sameAsPublished(t *testing.T, p amqp.Publishing, d *amqp.Delivery) {
	t.Helper()
	for k, v := range p.Headers {
		if got := d.Headers[k]; !reflect.DeepEqual(got, v) {
			t.Errorf("header %q: %#v became %#v", k, v, got)
		}
	}
	got, want := orders.Bare(d), p
	got.Headers, want.Headers, want.Expiration = nil, nil, ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("properties:\n %#v became\n %#v", want, got)
	}
}

// A message that the server has dead-lettered carries a history that brokers up
// to 3.13 take for a cycle when it waits again; see serverHeaders.
func TestBrokerLetsAPutBackDeadLetterWait(t *testing.T) {
	t.Parallel()
	b := dialBroker(t)
	dead := b.queue(amqp.Table{"x-queue-type": "classic"})
	work := b.queue(amqp.Table{
		"x-queue-type": "quorum", "x-delivery-limit": int64(1),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead,
	})
	waiting := b.queue(amqp.Table{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work})
	next, nextDead := b.consume(work), b.consume(dead)

	b.mustPublish(work, amqp.Publishing{MessageId: "m"})
	for range 2 {
		if err := next().Reject(true); err != nil {
			t.Fatal(err)
		}
	}
	d := nextDead()
	if d.Headers["x-death"] == nil {
		t.Fatalf("the server left no death history: %v", d.Headers)
	}
	b.mustPublish(work, amqp.Publishing{MessageId: "m", Headers: d.Headers}) // as a shovel would

	d = next()
	r := message.Read(work, settle.Quorum, d)
	if r.Attempt != 1 {
		t.Errorf("put back, it reads %+v, want attempt 1 (headers %v)", r, d.Headers)
	}
	step := settle.Copy{
		To:      settle.Target{Key: waiting, Queue: waiting, Expiration: 50 * time.Millisecond},
		Purpose: settle.ForDelay, Count: r.Attempt,
	}
	b.mustPublish(waiting, message.Copier{Queue: work}.Copy(d, r, step, message.Failure{}))
	if err := d.Ack(false); err != nil {
		t.Fatal(err)
	}
	d = next()
	if r := message.Read(work, settle.Quorum, d); r.Attempt != 2 || d.MessageId != "m" {
		t.Errorf("after waiting it reads %+v, want attempt 2", r)
	}
}

func TestBrokerCountsReturnsOfAQuorumQueue(t *testing.T) {
	t.Parallel()
	b := dialBroker(t)
	work := b.queue(amqp.Table{"x-queue-type": "quorum"})
	next := b.consume(work)
	// A producer that forwards another delivery's headers must not spend attempts.
	b.mustPublish(work, amqp.Publishing{Headers: amqp.Table{"x-delivery-count": int64(7)}})
	for want := 1; want <= 4; want++ {
		d := next()
		if got := message.Read(work, settle.Quorum, d).Attempt; got != want {
			t.Errorf("delivery %d reads attempt %d (redelivered %t, headers %v)", want, got, d.Redelivered, d.Headers)
		}
		if err := d.Reject(true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrokerTakesAHeaderFrameOfTheNegotiatedSize(t *testing.T) {
	t.Parallel()
	b := dialBroker(t)
	work := b.queue(amqp.Table{"x-queue-type": "classic"})
	limit := b.conn.Config.FrameSize

	p := sized(t, limit)
	b.mustPublish(work, p)
	d := b.consume(work)()
	if got := d.Headers["h"]; got != p.Headers["h"] {
		t.Error("the header came back changed")
	}
	bare := message.Copier{Queue: work}.Bare(d)
	if got := message.HeaderFrameSize(&bare); got != limit {
		t.Errorf("a bare copy needs %d bytes, want %d as the original", got, limit)
	}

	closed := b.conn.NotifyClose(make(chan *amqp.Error, 1))
	over := sized(t, limit+64)
	if err := b.publish(work, over); err == nil {
		t.Error("a larger header frame was confirmed")
	}
	select {
	case err := <-closed:
		if err == nil || err.Code != amqp.FrameError {
			t.Errorf("the connection closed with %v, want 501", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the connection is still open")
	}
}

// sized returns a message with a header frame of exactly size bytes.
func sized(t *testing.T, size int) amqp.Publishing {
	t.Helper()
	p := amqp.Publishing{Headers: amqp.Table{"h": ""}}
	p.Headers["h"] = strings.Repeat("x", size-message.HeaderFrameSize(&p))
	if got := message.HeaderFrameSize(&p); got != size {
		t.Fatalf("made %d bytes, want %d", got, size)
	}
	return p
}
