// Package backoff spaces out what is tried again.
package backoff

import (
	"math/rand/v2"
	"time"
)

// A Backoff grows from one pause to another, doubling, each step with up to half of
// it taken off at random so that many processes do not come back at once. It is not
// safe for concurrent use.
type Backoff struct{ low, high, step time.Duration }

// New returns a Backoff whose steps grow from low to high.
func New(low, high time.Duration) *Backoff { return &Backoff{low: low, high: high, step: low} }

// Next returns how long to wait before the next try, and makes the step after it
// longer.
func (b *Backoff) Next() time.Duration {
	d := b.Again()
	b.step = min(b.step*2, b.high)
	return d
}

// Again returns another pause of the same step.
func (b *Backoff) Again() time.Duration { return b.step - rand.N(b.step/2+1) }

// Step is the longest that the next pause can be.
func (b *Backoff) Step() time.Duration { return b.step }

// Reset begins at the shortest pause again.
func (b *Backoff) Reset() { b.step = b.low }

// Sleep waits for d or until a stop channel closes; it reports whether d passed.
func Sleep(d time.Duration, stop ...<-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	var first, second <-chan struct{}
	if len(stop) > 0 {
		first = stop[0]
	}
	if len(stop) > 1 {
		second = stop[1]
	}
	select {
	case <-t.C:
		return true
	case <-first:
		return false
	case <-second:
		return false
	}
}
