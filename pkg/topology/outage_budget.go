package topology

import (
	"math"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// exactRetries bounds the loop of [OutageBudget]; a back-off has long reached its
// limit, or the end of time, after that many retries.
const exactRetries = 10_000

// OutageBudget returns how long a handler of q may fail before the first message is
// spent: the least time from a message's first attempt to its last. It counts
// the delays that the spec itself sets (backoff, and the server's own for
// native), not those that a hook asks for, and not the time the hook takes.
//
// known is false when the spec sets no end: then no outage spends a message,
// unless the server has a limit of its own.
func OutageBudget(q *spec.Queue) (d time.Duration, known bool) {
	attempts := attempts(q)
	if attempts == 0 {
		return 0, false
	}
	wait := retryDelay(q)
	retries := attempts - 1
	var last time.Duration
	for n := 1; n <= min(retries, exactRetries); n++ {
		last = wait(n)
		d = addSaturating(d, last)
	}
	if rest := retries - exactRetries; rest > 0 && last > 0 {
		if int64(rest) > (math.MaxInt64-int64(d))/int64(last) {
			return math.MaxInt64, true
		}
		d += time.Duration(rest) * last
	}
	return d, true
}

// attempts is how often a message of q is tried, as far as the spec says; 0 is for
// ever. The server's count, and with it the limit of a quorum queue that has no
// cap, starts anew with every copy.
func attempts(q *spec.Queue) int {
	p := Policy(q)
	copied := p.Backoff != nil && p.Delay != nil && p.Delay.Mode == settle.ModeCopy
	switch {
	case q.MaxAttempts > 0:
		return q.MaxAttempts
	case !p.Limit.Given, p.Limit.Returns < 0, copied:
		return 0
	}
	return int(min(p.Limit.Returns, math.MaxInt32-1)) + 1
}

// retryDelay returns how long the message waits after its n-th attempt.
func retryDelay(q *spec.Queue) func(n int) time.Duration {
	p := Policy(q)
	switch {
	case p.Delay != nil && p.Delay.Mode == settle.ModeNative:
		return func(n int) time.Duration { return nativeDelay(q.Delay, n) }
	case p.Backoff == nil, p.Delay == nil && p.Type == settle.Quorum:
		return func(int) time.Duration { return 0 }
	}
	return func(n int) time.Duration { return waitFor(p.Delay, p.Backoff.After(n, 0)) }
}

// nativeDelay is the server's linear back-off after the n-th return.
func nativeDelay(d *spec.Delay, n int) time.Duration {
	if d.Min > 0 && int64(n) > int64(d.Max/d.Min) {
		return d.Max
	}
	return min(time.Duration(n)*d.Min, d.Max)
}

// waitFor is how long a copy that should wait d really waits, at least.
func waitFor(p *settle.Delay, d time.Duration) time.Duration {
	if d <= 0 || p == nil {
		return max(d, 0)
	}
	if p.Max > 0 {
		d = min(d, p.Max)
	}
	if p.Mode != settle.ModeCopy {
		return d
	}
	to := p.Route(d)
	if to.Expiration+to.XDelay > 0 {
		return to.Expiration + to.XDelay
	}
	return ceil(d, time.Second) // the ladder
}

func addSaturating(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
