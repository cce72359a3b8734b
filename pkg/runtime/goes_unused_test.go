package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/settle"
)

// fleeting declares a queue that goes with its last consumer.
func (b *bench) fleeting(name string) {
	b.t.Helper()
	if _, err := b.channel().QueueDeclare(name, true, true, false, false, nil); err != nil {
		b.t.Fatal(err)
	}
}

func TestLongPauseKeepsAQueueThatGoesWithItsLastConsumer(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil) + ".fleeting"
		b.fleeting(q)
		b.fill(q, 20)
		var there atomic.Bool
		var acked atomic.Int64
		hook := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			if !there.Load() {
				return hooks.Outcome{}, errGone
			}
			acked.Add(1)
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		r := newRunner(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Concurrency: 2, Prefetch: 10, GoesUnused: true}))
		r.consumers[0].breaker = r.consumers[0].newBreaker(breaker.Limits{Waiting: 200 * time.Millisecond, Probing: 300 * time.Millisecond})
		intake, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.run(intake, context.Background()) }()
		b.eventually("several consumers, one after the other", func() bool { return b.log.count("msg=consuming") >= 4 })
		there.Store(true)
		b.eventually("all to be acked", func() bool { return acked.Load() >= 20 })
		if n := acked.Load(); n != 20 {
			t.Errorf("%d messages were acked, want 20", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("run() = %v", err)
		}
		if !b.log.has("stopping the last consumer") {
			t.Error("the log does not say what the stop costs")
		}
	})
}

func TestQueueThatHasGoneIsDeclaredAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		hook := &recorder{reply: always(hooks.Ack)}
		var refusals atomic.Int64
		run := b.start(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, DeclareAgain: func(_ context.Context, conn *amqp.Connection) error {
			if refusals.Add(1) == 1 {
				return errors.New("not now")
			}
			ch, err := conn.Channel()
			if err != nil {
				return err
			}
			_, err = ch.QueueDeclare(q, true, false, false, false, amqp.Table{"x-queue-type": "classic"})
			return err
		}}))
		b.eventually("the consumer", func() bool { return b.log.has("msg=consuming") })
		b.delete(q)
		b.eventually("the queue to be there again", func() bool { return b.ready(q) >= 0 })
		b.publish(q, amqp.Publishing{MessageId: "after"})
		b.eventually("its message to be handled", func() bool { return len(hook.seen()) == 1 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		for _, text := range []string{"not now", "has been declared again"} {
			if !b.log.has(text) {
				t.Errorf("the log does not say %q", text)
			}
		}
	})
}

// Before 4.3 a quorum queue counts what is handed back, so a stop runs what it has
// prefetched.
func TestStopBefore43RunsWhatAQuorumQueueHasPrefetched(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 2)
		const n, prefetch = 20, 8
		b.fill(p.Queue, n)
		var ran atomic.Int64
		begun, goOn := make(chan struct{}, n), make(chan struct{})
		run := b.start(b.config(Queue{Policy: p, Hook: hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			begun <- struct{}{}
			<-goOn
			ran.Add(1)
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		}), Concurrency: 2, Prefetch: prefetch}))
		<-begun
		<-begun
		b.eventually("the prefetch to be full", func() bool { return b.ready(p.Queue) <= n-prefetch })
		run.drain()
		close(goOn)
		if err := run.wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if before := !handsBackFree(b.conn); before && ran.Load() < prefetch || !before && ran.Load() == n {
			t.Errorf("%d of %d messages ran before the stop was over, with a prefetch of %d", ran.Load(), n, prefetch)
		}
		b.eventually("all others back in the queue", func() bool { return b.ready(p.Queue) == n-int(ran.Load()) })
	})
}

// What the time does not allow to run is handed back, and the log says what that costs.
func TestStopRunsWhatItHasPrefetchedOnlyAsLongAsItMay(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 5)
		b.fill(p.Queue, 10)
		begun := make(chan struct{}, 100)
		hook := hooks.Func(func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return hooks.Outcome{}, fmt.Errorf("stopped: %w", ctx.Err())
		})
		cfg := b.config(Queue{Policy: p, Hook: hook, Concurrency: 2, Prefetch: 8})
		cfg.ShutdownTimeout = time.Second
		run := b.start(cfg)
		<-begun
		<-begun
		b.eventually("the prefetch to be full", func() bool { return b.ready(p.Queue) <= 2 })
		run.drain()
		if err := run.wait(); !errors.Is(err, errShutdownTimeout) {
			t.Errorf("Run() = %v, want %v", err, errShutdownTimeout)
		}
		b.eventually("all messages back in the queue", func() bool { return b.ready(p.Queue) == 10 })
		costs := !handsBackFree(b.conn)
		if got := b.log.has("costs each an attempt"); got != costs {
			t.Errorf("the log speaks of the cost: %v, want %v", got, costs)
		}
	})
}
