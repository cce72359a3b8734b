package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// send publishes a message as the runtime publishes a waiting copy, and fails
// unless the broker has taken it.
func (b *bundle) send(ch *amqp.Channel, to settle.Target, body string) {
	b.t.Helper()
	p := amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent}
	if to.Expiration > 0 {
		p.Expiration = settle.FormatCount(int(to.Expiration.Milliseconds()))
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	c, err := ch.PublishWithDeferredConfirm(to.Exchange, to.Key, !to.NotMandatory, false, p)
	if err != nil {
		b.t.Fatal(err)
	}
	if ok, err := c.WaitContext(b.t.Context()); !ok || err != nil {
		b.t.Fatalf("%s not confirmed: %v", body, err)
	}
	select {
	case r := <-returned:
		b.t.Fatalf("%s returned: %s", body, r.ReplyText)
	default:
	}
}

func TestCopiesComeBackNotEarlyAndNotBehindLongerOnes(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]spec.Delay{
		"levels":             {Strategy: "levels"},
		"dlx_ttl with tiers": {Strategy: "dlx_ttl", Tiers: []time.Duration{time.Second, 8 * time.Second}},
	} {
		for _, typ := range []spec.QueueType{spec.Classic, spec.Quorum} {
			t.Run(name+" on "+string(typ), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				q := queue("eu.orders", func(q *spec.Queue) { q.Type, q.Delay = typ, &delay })
				allIn(t, b.apply(b.compile(queues(q))), broker.Created, broker.OK)
				ch := b.channel()
				if err := ch.Confirm(false); err != nil {
					t.Fatal(err)
				}
				deliveries, err := ch.ConsumeWithContext(t.Context(), q.Name, "", true, false, false, false, nil)
				if err != nil {
					t.Fatal(err)
				}
				route := topology.Policy(&q).Delay.Route
				start := time.Now()
				b.send(ch, route(8*time.Second), "8s") // and the other one well before it is over
				b.send(ch, route(time.Second), "1s")
				for _, next := range []struct {
					body    string
					atLeast time.Duration
				}{{"1s", time.Second}, {"8s", 8 * time.Second}} {
					d := b.receive(deliveries)
					if waited := time.Since(start); string(d.Body) != next.body || waited < next.atLeast {
						t.Errorf("%s came after %v; want %s after %v or more", d.Body, waited, next.body, next.atLeast)
					}
				}
			})
		}
	}
}

func TestWhatNoQueueTakesDoesNotStopTheLadder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := queue("gone", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "levels"} })
	here := queue("here", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "levels"} })
	b.apply(b.compile(queues(gone, here)))
	ch := b.channel()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDelete("gone", false, false, false); err != nil {
		t.Fatal(err)
	}
	for range 100 { // more than a queue dead-letters at a time
		b.send(ch, topology.Policy(&gone).Delay.Route(time.Second), "lost?")
	}
	b.send(ch, topology.Policy(&here).Delay.Route(time.Second), "here")
	for queue, body := range map[string]string{"here": "here", "rsctl.v1.undelivered": "lost?"} {
		deliveries, err := ch.ConsumeWithContext(t.Context(), queue, "", true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := b.receive(deliveries); string(d.Body) != body {
			t.Errorf("%s has %s", queue, d.Body)
		}
	}
}

func (b *bundle) receive(deliveries <-chan amqp.Delivery) amqp.Delivery {
	b.t.Helper()
	select {
	case d, open := <-deliveries:
		if !open {
			b.t.Fatal("the channel was closed")
		}
		return d
	case <-time.After(patience):
		b.t.Fatalf("nothing came within %v", patience)
	}
	return amqp.Delivery{}
}
