package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/invoke"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

// caller calls the queue's hook, when it may be called.
type caller struct {
	*subscriber
	invoke  invoke.Caller
	breaker *breaker.Breaker
	rate    *pacer
}

func newCaller(r *subscriber) *caller {
	return &caller{
		subscriber: r,
		invoke:     invoke.Caller{Hook: r.q.Hook, Timeout: r.q.Timeout, Log: r.log},
		breaker:    r.newBreaker(breaker.UsualLimits()),
		rate:       newPacer(r.q.Rate),
	}
}

// ask calls the hook with so many bytes of bodies, when it may be called, until it
// could be run.
func (c *caller) ask(st lifetimes, sub *subscription, bodies int, call func() (hooks.Outcome, error)) (outcome hooks.Outcome, answered bool) {
	for {
		p, share, ok := c.admit(st, sub, bodies)
		if !ok {
			return hooks.Outcome{}, false
		}
		outcome, err := call()
		c.bodies.Handled().Give(share)
		switch {
		case err == nil && st.work.Err() != nil: // a hook that was stopped says nothing about the next
			c.breaker.Leave(p)
			return outcome, true
		case err == nil:
			note(c.breaker, p, outcome)
			return outcome, true
		case st.work.Err() != nil && errors.Is(err, hooks.ErrUnavailable):
			c.breaker.Leave(p)
			return hooks.Outcome{}, false
		case !errors.Is(err, hooks.ErrUnavailable) || c.q.RetryUnavailable:
			failed := hooks.Outcome{Verdict: hooks.Failed, Reason: err.Error()}
			note(c.breaker, p, failed)
			return failed, true
		}
		c.breaker.Unavailable(p, err)
	}
}

// admit waits until a hook may be called; false when the delivery cannot have it
// any more. Memory comes last: who has a share waits for nothing but the hook.
func (c *caller) admit(st lifetimes, sub *subscription, bodies int) (breaker.Token, memory.Share, bool) {
	for {
		err := c.stall.wait(c.asked(st), sub.ctx, sub.started)
		var p breaker.Token
		if err == nil {
			p, err = c.breaker.Enter(c.asked(st), sub.ctx, sub.started)
		}
		if err != nil && c.rest(st, sub, err) {
			return 0, memory.Share{}, false
		}
		if err != nil {
			continue
		}
		if !c.rate.wait(st.intake.Done(), sub.ctx.Done()) {
			c.breaker.Leave(p)
			return 0, memory.Share{}, false
		}
		share, ok := c.bodies.Handled().Take(int64(bodies), st.intake.Done(), sub.ctx.Done())
		if ok && sub.err() == nil && c.breaker.Admits(p) && !c.stall.on() {
			return p, share, true
		}
		c.bodies.Handled().Give(share)
		c.breaker.Leave(p)
		if !ok || sub.err() != nil {
			return 0, memory.Share{}, false
		}
	}
}

// observed calls the hook and tells the observer.
func (c *caller) observed(work context.Context, d *delivery, m hooks.Message) (hooks.Outcome, error) {
	if c.obs == nil {
		return c.invoke.One(work, m)
	}
	started := time.Now()
	c.obs.Observe(HookStarted{c.queue, m.Attempt, lag(d, started)})
	o, err := c.invoke.One(work, m)
	c.obs.Observe(HookEnded{c.queue, m.Attempt, time.Since(started), o.Verdict, err})
	return o, err
}

// clockSkew is how far a publisher's clock may be ahead of ours.
const clockSkew = time.Minute

// lag is how long ago a message that nobody has tried yet was published; 0 when
// it does not say. AMQP timestamps are whole seconds, and some publishers send
// milliseconds, which look like the far future.
func lag(d *delivery, now time.Time) time.Duration {
	if d.reading.Attempt != 1 || d.Redelivered || d.Timestamp.Unix() <= 0 {
		return 0
	}
	lag := now.Sub(d.Timestamp)
	if lag < -clockSkew {
		return 0
	}
	return max(lag, 1) // a message of this very second is known to be in time
}

// observedBatch calls the hook and tells the observer, for each message. The
// outcomes are nil when there is an error.
func (c *caller) observedBatch(work context.Context, ds []*delivery, ms []hooks.Message) ([]hooks.Outcome, error) {
	started := time.Now()
	for i, d := range ds {
		tell(c.obs, HookStarted{c.queue, ms[i].Attempt, lag(d, started)})
	}
	each, err := c.invoke.Batch(work, ms)
	took := time.Since(started)
	if err != nil {
		each = nil
	} else {
		each = hooks.Spread(each, len(ms))
	}
	for i := range ms {
		verdict := hooks.Failed
		if each != nil {
			verdict = each[i].Verdict
		}
		tell(c.obs, HookEnded{c.queue, ms[i].Attempt, took, verdict, err})
	}
	return each, err
}
