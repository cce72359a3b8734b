package runtime

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

// pacer spaces the hook calls of a queue evenly; nil does not.
type pacer struct{ limit *rate.Limiter }

// newPacer returns a pacer for so many calls per second; nil for 0.
func newPacer(perSecond float64) *pacer {
	if perSecond <= 0 {
		return nil
	}
	// A burst of one: what did not run in the last second may not run in this one.
	return &pacer{rate.NewLimiter(rate.Limit(perSecond), 1)}
}

// wait returns when the next call may start; false when a stop channel has closed
// first, and then the turn is free for another.
func (p *pacer) wait(stop ...<-chan struct{}) bool {
	if p == nil {
		return true
	}
	turn := p.limit.ReserveN(time.Now(), 1)
	if backoff.Sleep(turn.Delay(), stop...) {
		return true
	}
	turn.Cancel()
	return false
}
