package runtime

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

func TestBatchStartsNothingOnASubscriptionThatHandsBackWhatItHas(t *testing.T) {
	t.Parallel()
	c := newConsumer(Queue{Concurrency: 1, Order: Order{By: OrderByRoutingKey}, Batch: Batch{Size: 2}, Prefetch: 2}, shared{log: slog.New(slog.DiscardHandler)})
	st := lifetimes{t.Context(), t.Context()}
	mayStart := func(sub *subscription) bool { return (&batchReader{consumer: c, st: st, sub: sub}).mayStart() }
	for _, tt := range []struct {
		reason error
		want   bool
	}{{errServerCancelled, true}, {breaker.ErrPaused, false}} {
		sub := unsentDelivery().sub
		sub.setReason(tt.reason)
		if got := mayStart(sub); got != tt.want {
			t.Errorf("after %v: mayStart() = %v, want %v", tt.reason, got, tt.want)
		}
	}
	sub := unsentDelivery().sub
	if !mayStart(sub) {
		t.Error("nothing may start although nothing has happened")
	}
	if sub.cancel(errors.New("lost")); mayStart(sub) {
		t.Error("something may start after the channel has ended")
	}
}
