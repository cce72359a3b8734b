package runtime

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestARateBoundsTheHookCallsOfAllSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := bufferedLog()
		var mu sync.Mutex
		var calls []time.Time
		hook := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			mu.Lock()
			calls = append(calls, time.Now())
			mu.Unlock()
			time.Sleep(30 * time.Millisecond)
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		c := newConsumer(Queue{Hook: hook, Concurrency: 8, Rate: 50}, shared{log: log})
		st := lifetimes{t.Context(), t.Context()}
		started := time.Now()
		var slots sync.WaitGroup
		for range 8 {
			slots.Go(func() {
				for range 25 {
					c.answer(st, unsentDelivery())
				}
			})
		}
		slots.Wait()
		if took, want := time.Since(started), 4*time.Second; took < want-50*time.Millisecond || took > want+50*time.Millisecond {
			t.Errorf("200 calls at 50/s took %v, want about %v", took, want)
		}
		for i, at := range calls[1:] {
			if d := at.Sub(calls[i]); d < 19*time.Millisecond {
				t.Fatalf("call %d came %v after the one before it, want 20 ms", i+1, d)
			}
		}
	})
}

func TestAWaitForTheRateEndsWithTheStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stops func(stop context.CancelFunc, d *delivery)
	}{
		{"of the intake", func(stop context.CancelFunc, _ *delivery) { stop() }},
		{"of the channel the delivery came on", func(_ context.CancelFunc, d *delivery) { d.sub.cancel(errChannelClosed) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, _ := bufferedLog()
				hook := &recorder{reply: always(hooks.Ack)}
				c := newConsumer(Queue{Hook: hook, Concurrency: 2, Rate: 1. / 3600}, shared{log: log})
				intake, stop := context.WithCancel(t.Context())
				st := lifetimes{intake, t.Context()}
				c.answer(st, unsentDelivery())
				waits := unsentDelivery()
				time.AfterFunc(time.Minute, func() { tt.stops(stop, waits) })
				started := time.Now()
				if _, answered := c.answer(st, waits); answered {
					t.Error("the delivery was answered before its time")
				}
				if took := time.Since(started); took != time.Minute {
					t.Errorf("the wait took %v, want it to end with the stop after a minute", took)
				}
				c.answer(lifetimes{t.Context(), t.Context()}, unsentDelivery())
				if took := time.Since(started); took > time.Hour {
					t.Errorf("the next call came after %v: the turn that was given up is lost", took)
				}
				if n := len(hook.seen()); n != 2 {
					t.Errorf("the handler ran %d times, want 2", n)
				}
			})
		})
	}
}
