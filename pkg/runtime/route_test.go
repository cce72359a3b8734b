package runtime

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestSpentQuorumMessageIsKeptWhileItsDeadLetterQueueIsMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		reply hooks.Verdict
		runs  int // of each message
	}{
		{"spent", hooks.Retry, 2},
		{"dropped", hooks.Drop, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, settle.Quorum, 2)
				b.delete(p.DeadLetter)
				const n = 5
				for i := range n {
					b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
				}
				hook := &recorder{reply: always(tt.reply)}
				run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: n}))
				b.eventually("an error that names the queue", func() bool {
					return b.log.has("the dead-letter queue does not exist") && b.log.has(p.DeadLetter)
				})
				b.declare(p.DeadLetter, settle.Classic, nil)
				b.eventually("the dead letters", func() bool { return b.ready(p.DeadLetter) == n })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if got := len(hook.seen()); got != tt.runs*n {
					t.Errorf("the handler ran %d times, want %d", got, tt.runs*n)
				}
			})
		})
	}
}

func TestSpentQuorumMessageOutlivesAStopWithoutItsDeadLetterQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 2)
		b.delete(p.DeadLetter)
		b.publish(p.Queue, amqp.Publishing{MessageId: "m", Body: []byte("body")})
		hook := &recorder{reply: always(hooks.Retry)}
		run := b.start(b.config(Queue{Policy: p, Hook: hook}))
		b.eventually("the message to be kept", func() bool { return b.log.has("the dead-letter queue does not exist") })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		b.eventually("the message in its queue", func() bool { return b.ready(p.Queue) == 1 })
		b.declare(p.DeadLetter, settle.Classic, nil)
		run = b.start(b.config(Queue{Policy: p, Hook: hook}))
		if d := b.get(p.DeadLetter); d.MessageId != "m" || string(d.Body) != "body" {
			t.Errorf("dead-lettered %q with body %q", d.MessageId, d.Body)
		}
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if last := hook.seen()[len(hook.seen())-1]; last.Attempt != 2 {
			t.Errorf("the run after the restart was attempt %d, want the second again", last.Attempt)
		}
	})
}

func TestOneUnusableQueueDoesNotKeepTheOthersAfterAReconnect(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		px := newProxy(b)
		p := b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := px.through(b.config(Queue{Policy: p, Hook: hook}))
		var spoiled atomic.Bool
		var prepared atomic.Int64 // with success
		cfg.Prepare = func(context.Context, *amqp.Connection) error {
			if spoiled.Load() {
				return forGood("queue of another team is missing")
			}
			prepared.Add(1)
			return nil
		}
		run := b.start(cfg)
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the first message", func() bool { return len(hook.seen()) == 1 })
		spoiled.Store(true)
		px.cut()
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the second message, although something is missing", func() bool {
			return len(hook.seen()) >= 2 && b.log.has("queue of another team is missing")
		})
		before := prepared.Load()
		spoiled.Store(false)
		b.eventually("another preparation", func() bool { return prepared.Load() > before })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

func TestTopologyThatDoesNotAnswerDoesNotKeepQueuesFromBeingConsumed(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		px := newProxy(b)
		p := b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := px.through(b.config(Queue{Policy: p, Hook: hook}))
		var silent atomic.Bool
		cfg.Prepare = func(ctx context.Context, conn *amqp.Connection) error {
			if !silent.Load() {
				return nil
			}
			<-ctx.Done() // as a question to a queue whose node is down
			_ = conn.Close()
			return ctx.Err()
		}
		run := b.start(cfg)
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the first message", func() bool { return len(hook.seen()) == 1 })
		silent.Store(true)
		px.cut()
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the second message, although a question has no answer", func() bool { return len(hook.seen()) >= 2 })
		b.eventually("the log to say what is wrong", func() bool { return b.log.has(errPrepareTimeout.Error()) })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}
