package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/settle"
)

// pauses counts the events of a breaker.
type pauses struct {
	mu  sync.Mutex
	log []string
}

func (p *pauses) Observe(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case Paused:
		p.log = append(p.log, "paused: "+e.Err.Error())
	case Resumed:
		p.log = append(p.log, "resumed")
	}
}

// scripted answers in turn, and acks when it has come to its end.
type scripted struct {
	mu      sync.Mutex
	answers []any // hooks.Verdict or error
	at      []time.Time
}

func (h *scripted) Handle(context.Context, hooks.Message) (hooks.Outcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = append(h.at, time.Now())
	if len(h.answers) == 0 {
		return hooks.Outcome{Verdict: hooks.Ack}, nil
	}
	a := h.answers[0]
	h.answers = h.answers[1:]
	if err, ok := a.(error); ok {
		return hooks.Outcome{}, err
	}
	return hooks.Outcome{Verdict: a.(hooks.Verdict), Reason: "boom"}, nil
}

func TestABreakerPausesTheQueueAfterSoManyFailuresInARow(t *testing.T) {
	t.Parallel()
	const cooldown = 5 * time.Minute
	for _, tt := range []struct {
		name      string
		answers   []any
		onRetry   bool // unavailable counts as a retry
		wantPause []int
		wantLog   string
	}{
		{"three retries are three failures", []any{hooks.Retry, hooks.RetryAfter, hooks.Failed}, false, []int{3}, "paused: 3 failures in a row, the last: boom; resumed"},
		{"two are not enough", []any{hooks.Retry, hooks.Retry}, false, nil, ""},
		{"an ack between them starts the count anew", []any{hooks.Retry, hooks.Retry, hooks.Ack, hooks.Retry, hooks.Retry}, false, nil, ""},
		{"so does a drop", []any{hooks.Retry, hooks.Retry, hooks.Drop, hooks.Retry, hooks.Retry}, false, nil, ""},
		{"a probe that fails pauses the queue again", []any{hooks.Retry, hooks.Retry, hooks.Retry, hooks.Retry}, false, []int{3, 4},
			"paused: 3 failures in a row, the last: boom; paused: 4 failures in a row, the last: boom; resumed"},
		{"a handler that cannot be run counts when that is a retry", []any{errGone, errGone, hooks.Retry}, true, []int{3}, "paused: 3 failures in a row, the last: boom; resumed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, _ := bufferedLog()
				hook := &scripted{answers: tt.answers}
				c := newConsumer(Queue{Hook: hook, Concurrency: 1, RetryUnavailable: tt.onRetry, Breaker: Breaker{3, cooldown}}, shared{log: log})
				p := &pauses{}
				c.obs = p
				for range len(tt.answers) + 1 {
					if _, answered := c.answer(lifetimes{t.Context(), t.Context()}, unsentDelivery()); !answered {
						t.Error("a delivery was not answered")
					}
				}
				var paused []int
				for i, at := range hook.at[1:] {
					if d := at.Sub(hook.at[i]); d == cooldown {
						paused = append(paused, i+1)
					} else if d != 0 {
						t.Errorf("call %d came after %v, want 0 or the cooldown", i+1, d)
					}
				}
				if fmt.Sprint(paused) != fmt.Sprint(tt.wantPause) {
					t.Errorf("paused after the calls %v, want %v", paused, tt.wantPause)
				}
				if got := strings.Join(p.log, "; "); got != tt.wantLog {
					t.Errorf("told %q, want %q", got, tt.wantLog)
				}
			})
		})
	}
}

func TestAProbeThatMeetsAnUnavailableHookGoesOnByItsBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := bufferedLog()
		hook := &scripted{answers: []any{hooks.Retry, errGone}}
		c := newConsumer(Queue{Hook: hook, Concurrency: 1, Breaker: Breaker{1, time.Hour}}, shared{log: log})
		c.breaker = c.newBreaker(breaker.Limits{Waiting: 2 * time.Hour, Probing: 2 * time.Hour})
		for range 2 {
			c.answer(lifetimes{t.Context(), t.Context()}, unsentDelivery())
		}
		if d := hook.at[1].Sub(hook.at[0]); d != time.Hour {
			t.Errorf("the first probe came after %v, want the cooldown", d)
		}
		if d := hook.at[2].Sub(hook.at[1]); d > breaker.ProbeMin {
			t.Errorf("the second probe came after %v, want at most %v", d, breaker.ProbeMin)
		}
	})
}

func TestNothingIsKeptAtAClosedGateNearTheConsumerTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		usual := breaker.UsualLimits()
		log, _ := bufferedLog()
		c := newConsumer(Queue{Hook: &brokenHook{}, Concurrency: 2}, shared{log: log})
		st := lifetimes{t.Context(), t.Context()}
		started := time.Now()
		ended := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				d := unsentDelivery()
				if _, answered := c.answer(st, d); answered {
					t.Error("a delivery was answered")
				}
				if err := d.sub.reason(); err != breaker.ErrPaused {
					t.Errorf("its subscription ends with %v", err)
				}
				ended <- time.Since(started)
			}()
		}
		if d := <-ended; d != usual.Waiting {
			t.Errorf("the one that waited was kept for %v, want %v", d, usual.Waiting)
		}
		if d := <-ended; d != usual.Probing {
			t.Errorf("the one that probed was kept for %v, want %v", d, usual.Probing)
		}
		young := unsentDelivery()
		young.sub.started = time.Now()
		c.answer(st, young)
		if d := time.Since(started); d != 2*usual.Probing {
			t.Errorf("one that came then was kept until %v, want %v", d, 2*usual.Probing)
		}
	})
}

func TestLongPauseHandsTheMessagesBackAndTheyRunAfterIt(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		const n = 20
		for i := range n {
			b.publish(q, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		var there atomic.Bool
		var acked atomic.Int64
		hook := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			if !there.Load() {
				return hooks.Outcome{}, errGone
			}
			acked.Add(1)
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		r := newRunner(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Concurrency: 2, Prefetch: 10}))
		r.consumers[0].breaker = r.consumers[0].newBreaker(breaker.Limits{Waiting: 300 * time.Millisecond, Probing: time.Hour})
		intake, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.run(intake, context.Background()) }()
		b.eventually("all but the one that probes to be handed back", func() bool { return b.ready(q) == n-1 })
		there.Store(true)
		b.eventually("all to be acked", func() bool { return acked.Load() == n })
		stop()
		if err := <-done; err != nil {
			t.Errorf("run() = %v", err)
		}
		if left := b.ready(q); left != 0 {
			t.Errorf("%d messages are left", left)
		}
		if !b.log.has("queue paused for long") {
			t.Error("the log does not say that the messages were handed back")
		}
	})
}

func TestFailingHookSpendsNoAttemptWhileItsQueueIsPaused(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 6) // more than the four failures, whichever messages they fall on
		const n = 30
		for i := range n {
			b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		var failing, calls atomic.Int64
		hook := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			calls.Add(1)
			if failing.Add(1) <= 4 { // 3 trip the breaker and a probe fails
				return hooks.Outcome{Verdict: hooks.Retry, Reason: "503"}, nil
			}
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: 1, Prefetch: 10, Breaker: Breaker{3, 500 * time.Millisecond}}))
		b.eventually("all messages to be settled", func() bool { return calls.Load() == n+4 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if !b.log.has("handler fails every time; queue paused") || !b.log.has("handler still fails; queue stays paused") {
			t.Error("the log does not say that the queue was paused, twice")
		}
		if left := b.ready(p.Queue); left != 0 {
			t.Errorf("%d messages are left", left)
		}
	})
}
