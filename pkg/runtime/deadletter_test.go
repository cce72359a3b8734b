package runtime

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// A policy may give a queue a dead-letter route that no spec shows.
func TestADeadLetterPolicyMeetsRetriedOriginals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ack  bool
		dead int
	}{
		{"originals that are acked leave it empty", true, 0},
		{"originals that are rejected, as is the default, land there once a retry", false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dead, work := b.queue(settle.Classic, nil), b.name()
			b.management().newPolicy(work, "^"+work+"$", map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": dead})
			b.declare(work, settle.Classic, nil)
			b.publish(work, amqp.Publishing{MessageId: "m"})
			hook := &recorder{reply: failing(2)}
			p := settle.Policy{Queue: work, Type: settle.Classic, MaxAttempts: 5, AckOriginal: tt.ack}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			b.settled(run, hook, 3)
			for range tt.dead {
				b.get(dead)
			}
			if n := b.ready(dead); n != 0 {
				t.Errorf("%d more messages in the dead-letter queue than %d", n, tt.dead)
			}
			if n := b.ready(work); n != 0 {
				t.Errorf("%d messages are left", n)
			}
		})
	}
}

// Brokers up to 3.13 take the history of a dead letter that was put back for a
// cycle, and drop the message when it leaves its waiting queue.
func TestADeadLetterPutBackWithItsHistoryIsRetriedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(shortly(tablePolicy(kind, 2, "dlx_ttl"), 50*time.Millisecond))
			b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
			first := &recorder{reply: always(hooks.Retry)}
			run := b.start(b.config(Queue{Policy: p, Hook: first}))
			dead := b.get(p.DeadLetter)
			b.settled(run, first, 2)

			b.publish(p.Queue, amqp.Publishing{MessageId: dead.MessageId, Headers: dead.Headers, Body: dead.Body})
			second := &recorder{reply: failing(1)}
			run = b.start(b.config(Queue{Policy: p, Hook: second}))
			for i, c := range b.settled(run, second, 2) {
				if c.Attempt != i+1 {
					t.Errorf("run %d was attempt %d", i+1, c.Attempt)
				}
			}
		})
	}
}

func TestADeadLetterOfTheDeliveryLimitPutBackStartsAfresh(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.exactly(shortly(tablePolicy(settle.Quorum, 2, "dlx_ttl"), 50*time.Millisecond))
	b.bringAbout(p, settle.Facts{Attempt: 3})
	dead := b.get(p.DeadLetter)
	if dead.Headers["x-death"] == nil {
		t.Fatalf("the server left no history: %v", dead.Headers)
	}
	b.publish(p.Queue, amqp.Publishing{MessageId: dead.MessageId, Headers: dead.Headers})
	hook := &recorder{reply: failing(1)}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	for i, c := range b.settled(run, hook, 2) {
		if c.Attempt != i+1 {
			t.Errorf("run %d was attempt %d", i+1, c.Attempt)
		}
	}
	if n := b.ready(p.DeadLetter) + b.ready(p.Queue); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

func TestDelayedRetriesOfAQuorumQueueEnd(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("after %d attempts", attempts), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(shortly(tablePolicy(settle.Quorum, attempts, "dlx_ttl"), 50*time.Millisecond))
			b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
			hook := &recorder{reply: always(hooks.Retry)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			if dead := b.get(p.DeadLetter); dead.MessageId != "m" {
				t.Errorf("dead-lettered %q", dead.MessageId)
			}
			for i, c := range b.settled(run, hook, attempts) {
				if c.Attempt != i+1 {
					t.Errorf("run %d was attempt %d", i+1, c.Attempt)
				}
			}
			if n := b.ready(p.DeadLetter) + b.ready(p.Queue); n != 0 {
				t.Errorf("%d more messages are left", n)
			}
		})
	}
}

// A requeue in between is counted by the server, a copy by us.
func TestServerAndCopiesCountTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.exactly(tablePolicy(settle.Quorum, 4, "dlx_ttl"))
	b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
	hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
		if m.Attempt%2 == 1 {
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 30 * time.Millisecond}
		}
		return hooks.Outcome{Verdict: hooks.Retry}
	}}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	b.get(p.DeadLetter)
	for i, c := range b.settled(run, hook, 4) {
		if c.Attempt != i+1 {
			t.Errorf("run %d was attempt %d", i+1, c.Attempt)
		}
	}
}

func TestCopiesCanBePublishedInTheirOwnWay(t *testing.T) {
	t.Parallel()
	on, off, high := true, false, uint8(9)
	for _, tt := range []struct {
		name     string
		override Publisher
		mode     uint8
		priority uint8
	}{
		{"as the original by default", Publisher{}, amqp.Transient, 3},
		{"persistent", Publisher{Persistent: &on}, amqp.Persistent, 3},
		{"not persistent", Publisher{Persistent: &off}, amqp.Transient, 3},
		{"with another priority", Publisher{Priority: &high}, amqp.Transient, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := capped(b, settle.Classic, 2)
			exchange := p.Queue + "-retries"
			b.bind(exchange, p.Queue, p.Queue)
			p.RetryExchange = exchange
			if err := b.ch.QueueBind(p.DeadLetter, p.DeadLetter, exchange, false, nil); err != nil {
				t.Fatal(err)
			}
			b.publish(p.Queue, amqp.Publishing{DeliveryMode: amqp.Transient, Priority: 3})
			hook := &recorder{reply: always(hooks.Retry)}
			arrivals := []settle.Arrival{{Key: p.Queue}, {Exchange: exchange, Key: p.Queue}}
			run := b.start(b.config(Queue{Policy: p, Hook: hook, Publisher: tt.override, Arrivals: arrivals}))
			dead := b.get(p.DeadLetter)
			calls := b.settled(run, hook, 2)
			if dead.Exchange != exchange {
				t.Errorf("the dead letter came through exchange %q, want %q", dead.Exchange, exchange)
			}
			if second := calls[1]; second.DeliveryMode != tt.mode || second.Priority != tt.priority || second.Exchange != "" || second.RoutingKey != p.Queue {
				t.Errorf("attempt 2 was %+v, want delivery mode %d, priority %d, from where the first came", second.Message, tt.mode, tt.priority)
			}
			if dead.DeliveryMode != tt.mode || dead.Priority != tt.priority {
				t.Errorf("the dead letter has delivery mode %d and priority %d, want %d and %d", dead.DeliveryMode, dead.Priority, tt.mode, tt.priority)
			}
		})
	}
}

func TestARetryExchangeThatIsNotBoundLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Classic, 3)
	exchange := p.Queue + "-retries"
	b.bind(exchange, p.Queue, "another key")
	p.RetryExchange = exchange
	b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
	run := b.start(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}}))
	b.eventually("an error that names the exchange and the key", func() bool {
		return b.log.has("no such queue or no binding") && b.log.has("target="+exchange+"/"+p.Queue)
	})
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if d := b.get(p.Queue); d.MessageId != "m" || d.Headers["x-ruststream-retry-count"] != nil {
		t.Errorf("the original is %q with %v", d.MessageId, d.Headers)
	}
}
