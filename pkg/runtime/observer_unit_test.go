package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestTheLagIsThatOfAFirstAttempt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	first := func(at time.Time) *delivery {
		d := &delivery{Delivery: amqp.Delivery{Timestamp: at}}
		d.reading.Attempt = 1
		return d
	}
	again, second := first(now.Add(-time.Second)), first(now.Add(-time.Second))
	again.Redelivered, second.reading.Attempt = true, 2
	tests := []struct {
		name string
		d    *delivery
		want time.Duration
	}{
		{"the age of the timestamp", first(now.Add(-3 * time.Second)), 3 * time.Second},
		{"this very second is in time", first(now), 1},
		{"a clock that is ahead is in time", first(now.Add(10 * time.Second)), 1},
		{"milliseconds instead of seconds are not understood", first(time.Unix(now.UnixMilli(), 0)), 0},
		{"no timestamp", first(time.Time{}), 0},
		{"a timestamp of zero", first(time.Unix(0, 0)), 0},
		{"a redelivery has been tried before", again, 0},
		{"a second attempt", second, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := lag(tt.d, now); got != tt.want {
				t.Errorf("lag() = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestEveryErrorOfACopyHasAResult(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errSessionLost)
	wrapped := func(err error) error { return fmt.Errorf("%w: more about it", err) }
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want CopyResult
	}{
		{"confirmed", t.Context(), nil, CopyConfirmed},
		{"returned", t.Context(), wrapped(confirm.ErrReturned), CopyReturned},
		{"nacked", t.Context(), confirm.ErrNacked, CopyNacked},
		{"refused", t.Context(), fmt.Errorf("%w: %w", confirm.ErrRefused, &amqp.Error{Code: amqp.AccessRefused}), CopyRefused},
		{"too large", t.Context(), wrapped(confirm.ErrTooLarge), CopyTooLarge},
		{"no confirm", t.Context(), confirm.ErrNoConfirm, CopyTimedOut},
		{"the connection is lost", t.Context(), wrapped(confirm.ErrUnknown), CopyUnknown},
		{"no connection", t.Context(), confirm.ErrNotReady, CopyNotSent},
		{"the original's session is over", ended, context.Cause(ended), CopyGivenUp},
		{"an answer that came all the same counts", ended, confirm.ErrNacked, CopyNacked},
		{"anything else is unknown", t.Context(), errors.New("surprise"), CopyUnknown},
	}
	seen := map[CopyResult]bool{CopyForbidden: true} // told by what refuses an address, without a try
	for _, tt := range tests {
		seen[tt.want] = true
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := resultOf(tt.ctx, tt.err); got != tt.want {
				t.Errorf("resultOf(%v) = %s, want %s", tt.err, got, tt.want)
			}
		})
	}
	for _, r := range CopyResults() {
		if !seen[r] {
			t.Errorf("no case ends as %s", r)
		}
	}
}

// Not parallel: it measures allocations.
func TestNoObserverCostsNoAllocation(t *testing.T) {
	var nobody Observer
	queue, err := "orders", errors.New("x")
	if n := testing.AllocsPerRun(100, func() {
		tell(nobody, Received{queue})
		tell(nobody, Settled{Queue: queue, Ending: EndedAck})
		tell(nobody, CopyStarted{queue, settle.ForRetry})
		tell(nobody, NotConsuming{queue, err})
	}); n != 0 {
		t.Errorf("%v allocations without an observer, want none", n)
	}
}

func TestObserversAreAllTold(t *testing.T) {
	t.Parallel()
	a, z := &journal{}, &journal{}
	Observers{a, z}.Observe(Consuming{"q"})
	for _, j := range []*journal{a, z} {
		if got := told[Consuming](j); !slices.Equal(got, []Consuming{{"q"}}) {
			t.Errorf("got %v", got)
		}
	}
}
