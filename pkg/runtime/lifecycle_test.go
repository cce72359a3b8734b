package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// plain is a queue without a cap and its policy.
func (b *bench) plain() settle.Policy {
	b.t.Helper()
	return settle.Policy{Queue: b.queue(settle.Classic, nil), Type: settle.Classic}
}

// forGood is an error that trying again does not mend.
type forGood string

func (e forGood) Error() string   { return string(e) }
func (e forGood) Permanent() bool { return true }

const errForGood = forGood("wrong password")

func TestPermanentErrorBeforeTheFirstSessionEndsRun(t *testing.T) {
	t.Parallel()
	t.Run("of the dial", func(t *testing.T) {
		t.Parallel()
		log, out := bufferedLog()
		var dials atomic.Int64
		err := Run(t.Context(), t.Context(), Config{
			Dial: func(context.Context, string) (*amqp.Connection, error) {
				dials.Add(1)
				return nil, errForGood
			},
			Log: log, Queues: complete().Queues,
		})
		if !errors.Is(err, errForGood) || dials.Load() != 1 {
			t.Errorf("Run() = %v after %d dials, want the error after one", err, dials.Load())
		}
		if out.has("trying again") {
			t.Errorf("the log promises another try: %s", out)
		}
	})
	t.Run("of the preparation", func(t *testing.T) {
		t.Parallel()
		inMemory(t, func(t *testing.T, b *bench) {
			cfg := b.config(Queue{Policy: b.plain(), Hook: &recorder{reply: always(hooks.Ack)}})
			cfg.Prepare = func(context.Context, *amqp.Connection) error { return errForGood }
			if err := b.start(cfg).wait(); !errors.Is(err, errForGood) {
				t.Errorf("Run() = %v", err)
			}
		})
	})
}

func TestPermanentErrorAfterTheFirstSessionIsTriedAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		px := newProxy(b)
		p := b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := px.through(b.config(Queue{Policy: p, Hook: hook}))
		var prepared atomic.Int64
		cfg.Prepare = func(context.Context, *amqp.Connection) error {
			if prepared.Add(1) == 2 {
				return errForGood
			}
			return nil
		}
		run := b.start(cfg)
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the first message", func() bool { return len(hook.seen()) == 1 })
		px.cut()
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the second message", func() bool { return len(hook.seen()) >= 2 })
		b.eventually("a line that says why it took longer", func() bool { return b.log.has(errForGood.Error()) })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

func TestPassingErrorOfTheDialIsTriedAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		b.publish(p.Queue, amqp.Publishing{})
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := b.config(Queue{Policy: p, Hook: hook})
		var refused atomic.Int64
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, purpose string) (*amqp.Connection, error) {
			if refused.Add(1) <= 2 {
				return nil, errors.New("connection refused")
			}
			return dial(ctx, purpose)
		}
		run := b.start(cfg)
		b.settled(run, hook, 1)
		if n := b.log.count("no connection to the broker; trying again"); n != 2 {
			t.Errorf("the log reports %d failures, want 2", n)
		}
	})
}

func TestStopDuringTheDialEndsRun(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		cfg := b.config(Queue{Policy: b.plain(), Hook: &recorder{reply: always(hooks.Ack)}})
		dialing := make(chan struct{})
		cfg.Dial = func(ctx context.Context, _ string) (*amqp.Connection, error) {
			close(dialing)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		run := b.start(cfg)
		<-dialing
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v, want nil after a stop", err)
		}
	})
}

func TestQueueThatIsMissingAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		missing, p := b.name(), b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		run := b.start(b.config(
			Queue{Policy: settle.Policy{Queue: missing, Type: settle.Classic}, Hook: hook},
			Queue{Policy: p, Hook: hook},
		))
		b.eventually("an error that says what is missing and what to do", func() bool {
			return b.log.has(fmt.Sprintf(`queue \"%s\" does not exist; declare it with rsctl apply`, missing))
		})
		b.publish(p.Queue, amqp.Publishing{})
		b.eventually("the other queue to be consumed", func() bool { return len(hook.seen()) == 1 })
		b.declare(missing, settle.Classic, nil)
		b.publish(missing, amqp.Publishing{})
		b.settled(run, hook, 2)
	})
}

func TestTwoProcessesShareAQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		const n = 40
		var mu sync.Mutex
		runs := map[string]int{}
		both := make(chan struct{})
		started := make(chan int, 2*n)
		process := func(i int) *running {
			hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
				started <- i
				<-both // so that neither takes all of them
				mu.Lock()
				defer mu.Unlock()
				runs[m.MessageID]++
				return hooks.Outcome{Verdict: hooks.Ack}, nil
			})
			return b.start(b.config(Queue{Policy: p, Hook: hook, Prefetch: 2}))
		}
		first, second := process(1), process(2)
		for i := range n {
			b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		if a, z := <-started, <-started; a == z {
			t.Errorf("process %d runs two handlers with a concurrency of 1", a)
		}
		close(both)
		b.eventually("every message to run", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(runs) == n
		})
		for _, run := range []*running{first, second} {
			if err := run.stop(); err != nil {
				t.Errorf("Run() = %v", err)
			}
		}
		for id, k := range runs {
			if k != 1 {
				t.Errorf("message %s ran %d times", id, k)
			}
		}
	})
}

func TestQueueThatAnotherConsumesExclusivelyIsTakenOver(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		holder := b.channel()
		if _, err := holder.Consume(p.Queue, "holder", true, true, false, false, nil); err != nil {
			t.Fatal(err)
		}
		hook := &recorder{reply: always(hooks.Ack)}
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Consumer: Consumer{Exclusive: true}}))
		b.eventually("an error that explains it", func() bool {
			return b.log.has("may not be consumed (missing read permission, or another consumer has it exclusively)") && b.log.has(p.Queue)
		})
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
		b.publish(p.Queue, amqp.Publishing{})
		b.settled(run, hook, 1)
	})
}

func TestDrainWaitsForHeldCopies(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"timer", "hold"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				const delay = time.Second // longer than a drain looks
				p := b.exactly(shortly(tablePolicy(settle.Classic, 3, mode), delay))
				b.publish(p.Queue, amqp.Publishing{})
				hook := &recorder{reply: failing(1)}
				cfg := b.config(Queue{Policy: p, Hook: hook})
				cfg.Drain = true
				if err := b.start(cfg).wait(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if n := len(hook.seen()); n != 2 || b.ready(p.Queue) != 0 {
					t.Errorf("the handler ran %d times, %d messages are left; want 2 and none", n, b.ready(p.Queue))
				}
			})
		})
	}
}

func TestDrainCountsTheRetriesThatWaitOnTheBroker(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		const n = 3
		p, waiting, empty := b.plain(), b.queue(settle.Classic, nil), b.queue(settle.Classic, nil)
		p.Delay = &settle.Delay{Strategy: "dlx_ttl", Mode: settle.ModeCopy, Route: func(d time.Duration) settle.Target {
			return settle.Target{Key: waiting, Queue: waiting, Expiration: d}
		}}
		for range n {
			b.publish(p.Queue, amqp.Publishing{})
		}
		hook := &recorder{reply: func(hooks.Message) hooks.Outcome {
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Hour}
		}}
		cfg := b.config(Queue{Policy: p, Hook: hook, Waiting: []string{waiting, "no-such-queue", empty}})
		cfg.Drain = true
		if err := b.start(cfg).wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if want := fmt.Sprintf("target=%s count=%d", waiting, n); !b.log.has(want) || b.log.count("messages still wait") != 1 {
			t.Errorf("the log does not say, once, %q", want)
		}
	})
}

func TestDrainOfEmptyQueuesEnds(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := b.config(Queue{Policy: b.plain(), Hook: hook}, Queue{Policy: b.plain(), Hook: hook})
		cfg.Drain = true
		if err := b.start(cfg).wait(); err != nil || len(hook.seen()) != 0 {
			t.Errorf("Run() = %v after %d handler runs", err, len(hook.seen()))
		}
	})
}

func TestStoppingAndStartingAgainLosesNothing(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 100)
		var mu sync.Mutex
		acked := map[string]bool{}
		hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
			if m.Attempt == 1 {
				return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 5 * time.Millisecond}, nil
			}
			mu.Lock()
			defer mu.Unlock()
			acked[m.MessageID] = true
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		const rounds, perRound = 20, 10
		for round := range rounds {
			for i := range perRound {
				b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprintf("%d-%d", round, i)})
			}
			run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: 4}))
			if round%2 == 0 { // every other one is stopped while it starts
				b.eventually("the consumer", func() bool { return b.log.count("msg=consuming") > round/2 })
			}
			if err := run.stop(); err != nil {
				t.Errorf("Run() = %v", err)
			}
		}
		cfg := b.config(Queue{Policy: p, Hook: hook, Concurrency: 4})
		cfg.Drain = true
		if err := b.start(cfg).wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if len(acked) != rounds*perRound || b.ready(p.DeadLetter) != 0 {
			t.Errorf("%d of %d messages were acked, %d dead-lettered", len(acked), rounds*perRound, b.ready(p.DeadLetter))
		}
	})
}
