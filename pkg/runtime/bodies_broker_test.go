package runtime

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestBodyOverMaxBodyEndsInTheDeadLetterQueueWithItsReason(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, batch := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, batches of %d", kind, batch), func(t *testing.T) {
				t.Parallel()
				inMemory(t, func(t *testing.T, b *bench) {
					p := b.exactly(tablePolicy(kind, 3, "none"))
					p.MaxBody = 10
					b.publish(p.Queue, amqp.Publishing{MessageId: "large", Body: []byte("01234567890")})
					b.publish(p.Queue, amqp.Publishing{MessageId: "small", Body: []byte("0123456789")})
					hook := &recorder{reply: always(hooks.Ack)}
					q := Queue{Policy: p, Hook: hook, Batch: Batch{Size: batch}}
					if batch > 0 {
						q.Hook = batchFunc(func(ms []hooks.Message) ([]hooks.Outcome, error) {
							for _, m := range ms {
								_, _ = hook.Handle(t.Context(), m)
							}
							return ackAll(ms)
						})
					}
					run := b.start(b.config(q))
					dead := b.get(p.DeadLetter)
					if calls := b.settled(run, hook, 1); calls[0].MessageID != "small" {
						t.Errorf("the handler got %q, want the small message", calls[0].MessageID)
					}
					h := dead.Headers
					if dead.MessageId != "large" || string(dead.Body) != "01234567890" || h[message.HeaderReason] != "max_body" || h[message.HeaderAttempts] != int64(0) ||
						h[message.HeaderError] != "the body has 11 bytes, and max_body is 10" {
						t.Errorf("dead letter %s, %s, %v", dead.MessageId, dead.Body, h)
					}
					if b.ready(p.Queue) != 0 || b.ready(p.DeadLetter) != 0 {
						t.Errorf("%d messages are left, and %d more in the dead-letter queue, want none", b.ready(p.Queue), b.ready(p.DeadLetter))
					}
				})
			})
		}
	}
}

// Without a dead-letter queue of rsctl's, the message goes the way of a drop.
func TestBodyOverMaxBodyIsRejectedWhereThereIsNoDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				rejected := b.queue(settle.Classic, nil)
				work := b.queue(kind, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": rejected})
				b.publish(work, amqp.Publishing{MessageId: "large", Body: []byte("01234567890")})
				hook := &recorder{reply: always(hooks.Ack)}
				run := b.start(b.config(Queue{Policy: settle.Policy{Queue: work, Type: kind, MaxBody: 10}, Hook: hook}))
				if got := b.get(rejected); got.MessageId != "large" {
					t.Errorf("%s was rejected", got.MessageId)
				}
				b.settled(run, hook, 0)
				if !b.log.has("larger than max_body") || !b.log.has("message_id=large") {
					t.Error("the log does not say so")
				}
			})
		})
	}
}

// gatedHook holds messages until it is told to go on, and knows how many it has
// and had at most.
type gatedHook struct {
	open      chan struct{}
	now, most atomic.Int64
	done      atomic.Int64
}

func (h *gatedHook) Handle(context.Context, hooks.Message) (hooks.Outcome, error) {
	n := h.now.Add(1)
	for m := h.most.Load(); n > m && !h.most.CompareAndSwap(m, n); m = h.most.Load() {
	}
	<-h.open
	h.now.Add(-1)
	h.done.Add(1)
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func TestAboveMaxInMemoryOneMessageIsHandledAtATime(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		large, other, small := b.queue(settle.Classic, nil), b.queue(settle.Quorum, nil), b.queue(settle.Classic, nil)
		const each = 4
		for i := range each {
			for _, q := range []string{large, other} {
				b.publish(q, amqp.Publishing{MessageId: fmt.Sprint(i), Body: bytes.Repeat([]byte("x"), 2000)})
			}
		}
		hook, quick := &gatedHook{open: make(chan struct{})}, &recorder{reply: always(hooks.Ack)}
		cfg := b.config(
			Queue{Policy: settle.Policy{Queue: large, Type: settle.Classic}, Hook: hook, Concurrency: each},
			Queue{Policy: settle.Policy{Queue: other, Type: settle.Quorum}, Hook: hook, Concurrency: each},
			Queue{Policy: settle.Policy{Queue: small, Type: settle.Classic}, Hook: quick},
		)
		cfg.Bodies = memory.NewBodies(1000, cfg.Log)
		run := b.start(cfg)
		b.eventually("the others to wait", func() bool { return cfg.Bodies.Use().Waits == 2*each-1 })
		if use := cfg.Bodies.Use(); use.Unsettled != 2*each*2000 || hook.now.Load() != 1 {
			t.Errorf("%+v in use and %d handled, want %d bytes and 1", use, hook.now.Load(), 2*each*2000)
		}
		b.publish(small, amqp.Publishing{Body: []byte("y")})
		b.eventually("a small message to be handled beside them", func() bool { return len(quick.seen()) == 1 })
		close(hook.open)
		b.eventually("all to be handled", func() bool { return hook.done.Load() == 2*each })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if use := cfg.Bodies.Use(); hook.most.Load() != 1 || use.Unsettled != 0 {
			t.Errorf("%d were handled at a time, and %+v is left, want 1 and nothing", hook.most.Load(), use)
		}
		if n := strings.Count(b.log.String(), "reach max_in_memory"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
	})
}

// What waits for memory has begun nothing: a stop hands it back.
func TestStopHandsBackWhatWaitsForMemory(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		work := b.queue(settle.Classic, nil)
		for i := range 3 {
			b.publish(work, amqp.Publishing{MessageId: fmt.Sprint(i), Body: bytes.Repeat([]byte("x"), 2000)})
		}
		hook := &gatedHook{open: make(chan struct{})}
		cfg := b.config(Queue{Policy: settle.Policy{Queue: work, Type: settle.Classic}, Hook: hook, Concurrency: 3})
		cfg.Bodies = memory.NewBodies(1000, cfg.Log)
		run := b.start(cfg)
		b.eventually("the others to wait", func() bool { return cfg.Bodies.Use().Waits == 2 })
		run.drain()
		b.eventually("them to be back", func() bool { return b.ready(work) == 2 })
		close(hook.open)
		if err := run.wait(); err != nil || hook.done.Load() != 1 {
			t.Errorf("Run() = %v, and %d were handled, want 1", err, hook.done.Load())
		}
	})
}
