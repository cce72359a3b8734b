package runtime

import (
	"errors"
	"log/slog"
	"testing"
)

func TestBatchStartsNothingOnASubscriptionThatHandsBackWhatItHas(t *testing.T) {
	t.Parallel()
	c := newConsumer(Queue{Concurrency: 1, Order: Order{By: OrderByRoutingKey}, Batch: Batch{Size: 2}, Prefetch: 2}, shared{log: slog.New(slog.DiscardHandler)})
	st := stages{t.Context(), t.Context()}
	d := unsentDelivery()
	for _, tt := range []struct {
		reason error
		over   bool
	}{{errServerCancelled, false}, {errPaused, true}} {
		d := unsentDelivery()
		d.sub.setReason(tt.reason)
		if got := c.over(st, d.sub); got != tt.over {
			t.Errorf("after %v: over() = %v, want %v", tt.reason, got, tt.over)
		}
	}
	if c.over(st, d.sub) {
		t.Error("over before anything has happened")
	}
	if d.sub.cancel(errors.New("lost")); !c.over(st, d.sub) {
		t.Error("not over after the channel has ended")
	}
}
