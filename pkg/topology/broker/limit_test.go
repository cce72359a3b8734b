package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func handled(q *spec.Queue) { q.Handler = &spec.Handler{Kind: spec.Exec, Timeout: time.Second} }

func limitedTo(n int64, more ...func(*spec.Queue)) func(*spec.Queue) {
	return func(q *spec.Queue) {
		q.Type, q.Arguments = spec.Quorum, map[string]any{"x-delivery-limit": n}
		for _, change := range more {
			change(q)
		}
	}
}

// The server itself shows how often a message may come back.
func TestADeliveryLimitMeansOnThisServerWhatIsSaidOfIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("dead", amqp.Table{"x-queue-type": "classic"})
	for name, limit := range map[string]settle.Limit{
		"none": {}, "unlimited": {Given: true, Returns: -1}, "zero": {Given: true}, "two": {Given: true, Returns: 2},
	} {
		args := amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
		if limit.Given {
			args["x-delivery-limit"] = limit.Returns
		}
		b.declare(name, args)
		const enough = settle.DefaultReturns + 2
		returns, limited := limit.On(b.server().Major())
		if !limited {
			returns = enough
		}
		if got := b.returns(name, "dead", enough); got != returns {
			t.Errorf("%s: the message came back %d times, want %d", name, got, returns)
		}
	}
}

// returns publishes one message to queue and returns it again and again; it says
// how often it came back, at most limit times, before it was found in dead.
func (b *bundle) returns(queue, dead string, limit int64) int64 {
	b.t.Helper()
	ch := b.channel()
	if err := ch.PublishWithContext(b.t.Context(), "", queue, true, false, amqp.Publishing{}); err != nil {
		b.t.Fatal(err)
	}
	for n := int64(-1); ; n++ {
		if n == limit || !b.reject(ch, queue, dead) {
			return n
		}
	}
}

// reject returns the message that is in queue; false when it was in dead instead.
func (b *bundle) reject(ch *amqp.Channel, queue, dead string) bool {
	b.t.Helper()
	ctx := soon(b.t)
	for ctx.Err() == nil {
		for _, from := range []string{queue, dead} {
			d, ok, err := ch.Get(from, false)
			if err != nil {
				b.t.Fatal(err)
			}
			if ok && from == queue {
				if err := d.Reject(true); err != nil {
					b.t.Fatal(err)
				}
				return true
			}
			if ok {
				_ = d.Ack(false)
				return false
			}
		}
	}
	b.t.Fatal("the message is nowhere")
	return false
}

func TestALimitThatDropsReturnedMessagesOn3IsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	three := !b.server().AtLeast(4, 0)
	top := b.compile(queues(queue("work", limitedTo(-1, handled)), queue("store", limitedTo(-1)), queue("theirs", limitedTo(-1, handled))))
	applied := b.apply(top)
	b.declare("theirs", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(-1)})
	// What the spec does not say, but the broker has.
	foreign := b.compile(queues(queue("theirs", func(q *spec.Queue) { q.Type = spec.Quorum; handled(q) })))
	if !three {
		allIn(t, applied, broker.Created)
		allIn(t, b.check(top, b.management()), broker.OK)
		allIn(t, b.verify(top), broker.OK)
		want(t, find(t, b.verify(foreign), "queue", "theirs"), broker.OK, "")
		return
	}
	const refusal = "x-delivery-limit -1 is no limit since RabbitMQ 4.0 only"
	want(t, find(t, applied, "queue", "store"), broker.Warned, refusal)
	for _, r := range []*broker.Report{applied, b.check(top, b.management()), b.verify(top), b.verify(foreign)} {
		want(t, find(t, r, "queue", "theirs"), broker.Refused, refusal)
	}
	want(t, find(t, applied, "queue", "work"), broker.Refused, refusal)
}

func TestAnExistingLimitThatTheSpecDoesNotKnowIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("silent", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(3)})
	b.declare("moved", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(3), "x-dead-letter-exchange": ""})
	quorum := func(q *spec.Queue) { q.Type = spec.Quorum; handled(q) }
	external := func(q *spec.Queue) { quorum(q); q.External = true }
	silent, moved := "its x-delivery-limit 3 holds: a message that fails 4 times is dropped", "its x-delivery-limit 3 holds: a message that fails 4 times is moved"
	for _, change := range []func(*spec.Queue){quorum, external} {
		r := b.verify(b.compile(queues(queue("silent", change), queue("moved", change))))
		want(t, find(t, r, "queue", "silent"), broker.Warned, silent)
		want(t, find(t, r, "queue", "moved"), broker.Warned, moved)
	}
	r := b.check(b.compile(queues(queue("silent", external), queue("moved", external))), nil)
	want(t, find(t, r, "queue", "silent"), broker.Warned, silent)
	want(t, find(t, r, "queue", "moved"), broker.Warned, moved)
}

func TestAQueueThatDoesNotDelayItsRetriesIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("q", amqp.Table{"x-queue-type": "quorum"})
	r := b.verify(b.compile(queues(queue("q", func(q *spec.Queue) {
		q.Type, q.Delay = spec.Quorum, &spec.Delay{Strategy: "native", Min: time.Second, Max: time.Minute}
	}))))
	if b.server().Native() {
		want(t, find(t, r, "queue", "q"), broker.Warned, "the server does not wait before a retry")
		return
	}
	want(t, find(t, r, "queue", "q"), broker.Refused, "needs RabbitMQ 4.3")
}
