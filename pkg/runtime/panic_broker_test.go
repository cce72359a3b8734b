package runtime

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestHookThatPanicsFailsItsMessageAndNotTheProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, kind, 2)
				b.publish(p.Queue, amqp.Publishing{MessageId: "bad"})
				b.publish(p.Queue, amqp.Publishing{MessageId: "good"})
				hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
					if m.MessageID == "bad" {
						panic("index out of range")
					}
					return hooks.Outcome{Verdict: hooks.Ack}
				}}
				run := b.start(b.config(Queue{Policy: p, Hook: hook}))
				dead := b.get(p.DeadLetter)
				if dead.MessageId != "bad" {
					t.Errorf("dead-lettered %q", dead.MessageId)
				}
				if why := dead.Headers["x-rsctl-error"]; kind == settle.Classic && why != "the handler panicked: index out of range" {
					t.Errorf("its dead letter says %v", why)
				}
				b.eventually("the good message to be acked", func() bool { return b.log.has("msg=acked") })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if n := b.ready(p.Queue); n != 0 {
					t.Errorf("%d messages are left", n)
				}
				if n := b.log.count("handler panicked;"); n != 2 || !b.log.has("panic_broker_test.go") {
					t.Errorf("%d lines tell of the panics with their stacks, want one for each of 2 attempts", n)
				}
			})
		})
	}
}

func TestBatchHookThatPanicsFailsItsMessages(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 1)
		for range 3 {
			b.publish(p.Queue, amqp.Publishing{})
		}
		hook := panics{}
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Prefetch: 3, Batch: Batch{3, time.Millisecond}}))
		b.eventually("all three in the dead-letter queue", func() bool { return b.ready(p.DeadLetter) == 3 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

type panics struct{ hooks.Func }

func (panics) HandleBatch(context.Context, []hooks.Message) ([]hooks.Outcome, error) {
	panic("no batches today")
}
