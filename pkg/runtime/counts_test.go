package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// heldHook holds every run until it is released, and notes the attempts.
type heldHook struct {
	started chan hooks.Message
	release chan struct{}
}

func newHeldHook() *heldHook {
	return &heldHook{started: make(chan hooks.Message, 100), release: make(chan struct{})}
}

func (h *heldHook) Handle(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
	h.started <- m
	<-h.release
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func TestLostConnectionCostsAnAttemptOnAQuorumQueueOnly(t *testing.T) {
	t.Parallel()
	for kind, want := range map[settle.Type]int{settle.Classic: 1, settle.Quorum: 2} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				px := newProxy(b)
				p := capped(b, kind, 5)
				b.publish(p.Queue, amqp.Publishing{}) // no id: a lost ack is not remembered
				hook := newHeldHook()
				run := b.start(px.through(b.config(Queue{Policy: p, Hook: hook, Concurrency: 2})))
				<-hook.started
				px.cut()
				if again := <-hook.started; again.Attempt != want {
					t.Errorf("after the connection was lost it is attempt %d, want %d", again.Attempt, want)
				}
				close(hook.release)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if n := b.ready(p.Queue); n != 0 {
					t.Errorf("%d messages came back", n)
				}
			})
		})
	}
}

// handsBackSoon leaves little time to run what has been prefetched before it is
// handed back, as a stop does before RabbitMQ 4.3.
const handsBackSoon = 8 * time.Second

func TestHandBackCostsAnAttemptOnAQuorumQueueBefore43Only(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, kind, 5)
				const n = 6
				for i := range n {
					b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
				}
				first := newHeldHook()
				cfg := b.config(Queue{Policy: p, Hook: first, Concurrency: 1, Prefetch: n})
				cfg.ShutdownTimeout = handsBackSoon
				run := b.start(cfg)
				<-first.started
				b.eventually("the others to be prefetched", func() bool { return b.ready(p.Queue) == 0 })
				run.drain()
				b.eventually("the others to be handed back", func() bool { return b.ready(p.Queue) == n-1 })
				close(first.release)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				second := &recorder{reply: always(hooks.Ack)}
				run = b.start(b.config(Queue{Policy: p, Hook: second}))
				attempts := map[int]int{}
				for _, c := range b.settled(run, second, n-1) {
					attempts[c.Attempt]++
				}
				want := 1
				if kind == settle.Quorum && !b.since(4, 3) {
					want = 2
				}
				if attempts[want] != n-1 {
					t.Errorf("the messages that were handed back came as attempts %v, want all as attempt %d", attempts, want)
				}
			})
		})
	}
}

func TestCopyGoesToTheEndOfItsQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 3)
		for _, id := range []string{"a", "b", "c"} {
			b.publish(p.Queue, amqp.Publishing{MessageId: id})
		}
		hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
			if m.MessageID == "a" && m.Attempt == 1 {
				return hooks.Outcome{Verdict: hooks.Retry}
			}
			return hooks.Outcome{Verdict: hooks.Ack}
		}}
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Prefetch: 1}))
		calls := b.settled(run, hook, 4)
		var order string
		for _, c := range calls {
			order += c.MessageID
		}
		if order != "abca" {
			t.Errorf("the messages ran in the order %s, want abca", order)
		}
	})
}

// The server moves a quorum queue's spent message by itself, and does not see
// that a classic queue refuses it. Docs tell operators of the policy against it.
func TestTheServerDropsASpentQuorumMessageThatAFullClassicQueueRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Quorum, 1)
	b.delete(p.DeadLetter)
	b.declare(p.DeadLetter, settle.Classic, amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	b.publish(p.DeadLetter, amqp.Publishing{MessageId: "filler"})
	b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
	hook := &recorder{reply: always(hooks.Retry)}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	b.settled(run, hook, 1)
	if d := b.get(p.DeadLetter); d.MessageId != "filler" || b.ready(p.DeadLetter) != 0 {
		t.Errorf("the dead-letter queue held %q and %d more; want the filler alone", d.MessageId, b.ready(p.DeadLetter))
	}
}
