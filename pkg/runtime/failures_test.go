package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestCopyThatCannotArriveLosesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(b *bench, dead string) // before the run
		mend  func(b *bench, dead string) // while it runs
		log   string
	}{
		{
			name:  "the dead-letter queue is missing",
			spoil: func(b *bench, dead string) { b.delete(dead) },
			mend:  func(b *bench, dead string) { b.declare(dead, settle.Classic, nil) },
			log:   "no such queue",
		},
		{
			name: "the dead-letter queue is full",
			spoil: func(b *bench, dead string) {
				b.delete(dead)
				b.declare(dead, settle.Classic, amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
				b.publish(dead, amqp.Publishing{MessageId: "filler"})
			},
			mend: func(b *bench, dead string) { b.delete(dead); b.declare(dead, settle.Classic, nil) },
			log:  "the queue is full",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, settle.Classic, 1)
				tt.spoil(b, p.DeadLetter)
				for i := range 3 {
					b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprintf("m%d", i)})
				}
				run := b.start(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}, Concurrency: 3}))
				b.eventually("an error that names the target", func() bool { return b.log.has(tt.log) && b.log.has(p.DeadLetter) })
				tt.mend(b, p.DeadLetter)
				ids := map[string]bool{}
				for range 3 {
					ids[b.get(p.DeadLetter).MessageId] = true
				}
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if len(ids) != 3 || b.ready(p.Queue) != 0 {
					t.Errorf("dead-lettered %v, %d left in the queue; want the 3 messages once each", ids, b.ready(p.Queue))
				}
			})
		})
	}
}

func TestSettlementIsOutOfOrderAndOnceEach(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 20)
		const n = 200
		for i := range n {
			b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		var done sync.Map
		hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
			time.Sleep(rand.N(20 * time.Millisecond)) // hooks take their time
			if rand.IntN(10) < 3 {
				return hooks.Outcome{Verdict: hooks.Retry}, nil
			}
			if _, twice := done.LoadOrStore(m.MessageID, true); twice {
				t.Errorf("%s was acked and came back", m.MessageID)
			}
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		cfg := b.config(Queue{Policy: p, Hook: hook, Concurrency: 8, Prefetch: 8})
		cfg.Drain = true
		if err := b.start(cfg).wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		for i := range n {
			if _, ok := done.Load(fmt.Sprint(i)); !ok {
				t.Errorf("message %d was not acked", i)
			}
		}
		if b.log.has("subscribing again") {
			t.Error("a channel was closed")
		}
	})
}

func TestDrainFinishesRunningHooksAndHandsTheRestBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				q := b.queue(kind, nil)
				for i := range 10 {
					b.publish(q, amqp.Publishing{MessageId: fmt.Sprint(i)})
				}
				started, release := make(chan string, 10), make(chan struct{})
				hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
					started <- m.MessageID
					<-release
					return hooks.Outcome{Verdict: hooks.Ack}, nil
				})
				policy := settle.Policy{Queue: q, Type: kind}
				run := b.start(b.config(Queue{Policy: policy, Hook: hook, Concurrency: 2, Prefetch: 10}))
				<-started
				<-started
				b.eventually("the prefetch to fill", func() bool { return b.ready(q) == 0 })
				run.drain()
				b.eventually("8 messages to come back while 2 handlers run", func() bool { return b.ready(q) == 8 })
				close(release)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v, want a clean drain", err)
				}
				if len(started) != 0 || b.ready(q) != 8 {
					t.Errorf("%d more handlers ran, %d messages left; want 0 and 8", len(started), b.ready(q))
				}
			})
		})
	}
}

func TestHookThatOutlastsTheShutdownIsStoppedAndItsMessageKept(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 3)
		b.publish(p.Queue, amqp.Publishing{MessageId: "long"})
		started := make(chan struct{})
		hook := hooks.Func(func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
			close(started)
			<-ctx.Done()
			return hooks.Outcome{Reason: "stopped"}, nil
		})
		cfg := b.config(Queue{Policy: p, Hook: hook})
		cfg.ShutdownTimeout = 50 * time.Millisecond
		run := b.start(cfg)
		<-started
		run.stopShort()
		if d := b.get(p.Queue); d.Headers["x-ruststream-retry-count"] != nil {
			t.Errorf("the interrupted attempt was counted: %v", d.Headers)
		}
	})
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		b.publish(q, amqp.Publishing{MessageId: "long"})
		started := make(chan struct{})
		hook := hooks.Func(func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
			close(started)
			<-ctx.Done()
			return hooks.Outcome{}, nil
		})
		run := b.start(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook}))
		<-started
		run.drain()
		run.kill()
		if err := run.wait(); !errors.Is(err, ErrCutShort) {
			t.Errorf("Run() = %v, want %v", err, ErrCutShort)
		}
		b.eventually("the message back in its queue", func() bool { return b.ready(q) == 1 })
	})
}

func TestUnavailableHookSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 2)
		const n = 50
		for i := range n {
			b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		var tries, acked atomic.Int64
		var there atomic.Bool
		hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
			if !there.Load() {
				tries.Add(1)
				return hooks.Outcome{}, &hooks.UnavailableError{Target: "./gone.sh", Err: errors.New("no such file")}
			}
			if m.Attempt != 1 {
				t.Errorf("message %s is on attempt %d", m.MessageID, m.Attempt)
			}
			acked.Add(1)
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: 4}))
		b.eventually("a few probes", func() bool { return tries.Load() >= 3 })
		b.eventually("the log to say that the queue is paused, and why", func() bool {
			return b.log.has("handler unavailable; queue paused") && b.log.has("./gone.sh")
		})
		there.Store(true)
		b.eventually("all messages to be acked", func() bool { return acked.Load() == n })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if dead := b.ready(p.DeadLetter); dead != 0 {
			t.Errorf("%d messages were dead-lettered", dead)
		}
	})
}

func TestQueueDeletedAndDeclaredAgainIsConsumedAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		gone, other := b.queue(settle.Classic, nil), b.queue(settle.Classic, nil)
		hook := &recorder{reply: always(hooks.Ack)}
		run := b.start(b.config(
			Queue{Policy: settle.Policy{Queue: gone, Type: settle.Classic}, Hook: hook},
			Queue{Policy: settle.Policy{Queue: other, Type: settle.Classic}, Hook: hook},
		))
		b.publish(gone, amqp.Publishing{MessageId: "before"})
		b.eventually("the first message", func() bool { return len(hook.seen()) == 1 })
		b.delete(gone)
		b.eventually("an error that says so", func() bool { return b.log.has("cancelled by server") && b.log.has(gone) })
		b.publish(other, amqp.Publishing{MessageId: "meanwhile"})
		b.eventually("the other queue to go on", func() bool { return len(hook.seen()) == 2 })
		b.declare(gone, settle.Classic, nil)
		b.publish(gone, amqp.Publishing{MessageId: "after"})
		b.eventually("the message of the new queue", func() bool { return len(hook.seen()) == 3 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

func TestPlainRequeueCannotSpin(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				q := b.queue(kind, amqp.Table{})
				b.publish(q, amqp.Publishing{MessageId: "m"})
				cfg := b.config(Queue{Policy: settle.Policy{Queue: q, Type: kind}, Hook: &recorder{reply: always(hooks.Retry)}})
				came := &arrivals{}
				cfg.Observer = came
				run := b.start(cfg)
				b.eventually("five deliveries", func() bool { return len(came.times()) >= 5 })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				at := came.times()
				for i := 2; i < 5; i++ { // the second follows a first delivery, which goes back at once
					if gap := at[i].Sub(at[i-1]); gap < settle.RequeueFloor {
						t.Errorf("delivery %d came %v after the one before", i+1, gap)
					}
				}
			})
		})
	}
}

// arrivals notes when deliveries have come in: from then on the runtime counts.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) Observe(e Event) {
	if _, ok := e.(Received); !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

func (a *arrivals) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.at)
}

func TestHeldCopySurvivesAGracefulStop(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 3)
		b.publish(p.Queue, amqp.Publishing{MessageId: "later"})
		hook := &recorder{reply: func(hooks.Message) hooks.Outcome {
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Hour}
		}}
		cfg := b.config(Queue{Policy: p, Hook: hook})
		cfg.ShutdownTimeout = 100 * time.Millisecond
		run, j := b.observed(cfg)
		b.eventually("the copy to be held, and a connection to send it on", func() bool {
			return len(told[CopyHeld](j)) == 1 && len(told[Connected](j)) == 2
		})
		run.stopShort()
		if d := b.get(p.Queue); d.Headers["x-ruststream-retry-count"] != "1" || d.Expiration != "" {
			t.Errorf("the copy came back as %v, expiration %q", d.Headers, d.Expiration)
		}
	})
}

func TestMessageWithNoRoomForACopyEndsInTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 3)
		b.publish(p.Queue, amqp.Publishing{MessageId: "fat", Headers: amqp.Table{"h": strings.Repeat("x", 131_020)}})
		b.publish(p.Queue, amqp.Publishing{MessageId: "next"})
		hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
			if m.MessageID == "fat" {
				return hooks.Outcome{Verdict: hooks.Retry}
			}
			return hooks.Outcome{Verdict: hooks.Ack}
		}}
		run := b.start(b.config(Queue{Policy: p, Hook: hook}))
		if dead := b.get(p.DeadLetter); dead.MessageId != "fat" {
			t.Errorf("dead-lettered %q", dead.MessageId)
		}
		b.eventually("the next message", func() bool { return len(hook.seen()) == 2 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if b.log.has("no connection") || !b.log.has("no room for a copy") {
			t.Error("the log does not tell it as it is")
		}
	})
}
