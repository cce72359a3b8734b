package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/settle"
)

var errGone = &hooks.UnavailableError{Target: "./gone.sh", Err: errors.New("no such file")}

// bufferedLog is a logger and what it has written.
func bufferedLog() (*slog.Logger, *syncBuffer) {
	b := &syncBuffer{}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})), b
}

// brokenHook is a hook that cannot be run until it is mended.
type brokenHook struct {
	mu      sync.Mutex
	mended  bool
	running int
	most    int // at a time, since the breaker opened
	tries   []time.Time
	takes   time.Duration
}

func (h *brokenHook) Handle(context.Context, hooks.Message) (hooks.Outcome, error) {
	h.mu.Lock()
	h.tries = append(h.tries, time.Now())
	h.running++
	h.most = max(h.most, h.running)
	h.mu.Unlock()
	time.Sleep(h.takes)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if !h.mended {
		return hooks.Outcome{}, errGone
	}
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func (h *brokenHook) mend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mended = true
}

func (h *brokenHook) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries, h.most = nil, 0
}

func (h *brokenHook) seen() ([]time.Time, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]time.Time(nil), h.tries...), h.most
}

// unsentDelivery is a delivery that no channel knows, for what is decided before
// any settlement.
func unsentDelivery() *delivery {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &delivery{sub: &subscription{ctx: ctx, cancel: cancel, known: make(chan struct{})}, arrived: time.Now()}
}

func TestOneDeliveryAtATimeProbesABrokenHook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := bufferedLog()
		hook := &brokenHook{takes: 10 * time.Millisecond}
		const concurrency = 8
		c := newConsumer(Queue{Policy: settle.Policy{Queue: "q", Type: settle.Classic}, Hook: hook, Concurrency: concurrency}, shared{log: log})
		st := lifetimes{t.Context(), t.Context()}
		var acked sync.WaitGroup
		for range concurrency {
			acked.Go(func() {
				if o, answered := c.answer(st, unsentDelivery()); !answered || o.Verdict != hooks.Ack {
					t.Errorf("answer() = %v, %v; want ack", o, answered)
				}
			})
		}
		time.Sleep(50 * time.Millisecond) // all of them have met the broken hook
		hook.forget()
		time.Sleep(2 * time.Minute)
		tries, most := hook.seen()
		if most != 1 {
			t.Errorf("%d deliveries probed the handler at a time, want 1", most)
		}
		// Each pause adds half to all of the time that has passed, then a try comes
		// every 15 to 30 s.
		if len(tries) < 10 || len(tries) > 26 {
			t.Errorf("%d probes in 2 minutes, want 10 to 26", len(tries))
		}
		if pause := tries[len(tries)-1].Sub(tries[len(tries)-2]); pause < breaker.ProbeMax/2 || pause > breaker.ProbeMax+time.Second {
			t.Errorf("the last pause was %v, want it to have grown to about %v", pause, breaker.ProbeMax)
		}
		hook.mend()
		acked.Wait()
	})
}

func TestAWaitAtAnOpenBreakerEndsWithTheStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stops func(stop, lost context.CancelFunc)
	}{
		{"of the intake", func(stop, _ context.CancelFunc) { stop() }},
		{"of the channel the delivery came on", func(_, lost context.CancelFunc) { lost() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, _ := bufferedLog()
				hook := &brokenHook{}
				c := newConsumer(Queue{Hook: hook, Concurrency: 3}, shared{log: log})
				intake, stop := context.WithCancel(t.Context())
				ds := []*delivery{unsentDelivery(), unsentDelivery(), unsentDelivery()}
				lost := func() {
					for _, d := range ds {
						d.sub.cancel(errChannelClosed)
					}
				}
				var waiting sync.WaitGroup
				for _, d := range ds {
					waiting.Go(func() {
						if _, answered := c.answer(lifetimes{intake, t.Context()}, d); answered {
							t.Error("a delivery that only waited was answered")
						}
					})
				}
				time.Sleep(100 * time.Millisecond)
				started := time.Now()
				tt.stops(stop, lost)
				waiting.Wait()
				if took := time.Since(started); took != 0 {
					t.Errorf("the wait went on for %v", took)
				}
				stop()

				hook.mend()
				o, answered := c.answer(lifetimes{t.Context(), t.Context()}, unsentDelivery())
				if !answered || o.Verdict != hooks.Ack {
					t.Errorf("later, answer() = %v, %v; want another delivery to probe and be acked", o, answered)
				}
			})
		})
	}
}
