package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// handle runs the hook on one delivery and settles it. It owns one slot, and the
// turn of its key, until the hook has answered: settling, with the waiting that
// may belong to it, keeps only the delivery's place in the prefetch.
func (c *consumer) handle(st stages, d *delivery) {
	c.understand(d)
	if c.q.Policy.Oversized(len(d.Body)) {
		c.next(st, d)
		c.endOversized(st, d)
		return
	}
	outcome, answered := c.answer(st, d)
	d.hasRun()
	if d.sub.taken() {
		defer c.next(st, d) // which may be d's redelivery: a lost ack must be known by then
	} else {
		c.next(st, d)
	}
	c.conclude(st, d, outcome, answered)
}

func (c *consumer) understand(d *delivery) {
	d.reading = c.q.reader().Read(&d.Delivery)
	if problem := d.reading.CountProblem; problem != "" {
		c.warned.once("retry count not understood", problem, logkey.MessageID, d.MessageId)
	}
}

// conclude ends a delivery; answered is false when no hook has seen it.
func (c *consumer) conclude(st stages, d *delivery, outcome hooks.Outcome, answered bool) {
	switch {
	case d.sub.err() != nil && !answered: // gone while it waited; the broker redelivers it
		c.lose()
	case !answered:
		c.unseen(d)
	case st.work.Err() != nil && (outcome.Verdict == hooks.Failed || outcome.Verdict == hooks.Retry):
		c.log.Warn("handler stopped by the shutdown; its delivery is requeued", logkey.MessageID, d.MessageId, logkey.Attempt, d.reading.Attempt)
		_ = c.recover(&vigil{c: c, st: st, d: d}, outcome, settle.Stopped) // it publishes nothing
	default:
		c.settle(st, d, outcome)
	}
}

// answer returns the hook's outcome; answered is false when no hook has seen
// the delivery.
func (c *consumer) answer(st stages, d *delivery) (outcome hooks.Outcome, answered bool) {
	if c.succeeded(d) {
		return hooks.Outcome{Verdict: hooks.Ack}, true
	}
	m := message.ForHook(c.queue, c.q.Policy.MaxAttempts, d.reading, &d.Delivery)
	return c.ask(st, d.sub, len(d.Body), func() (hooks.Outcome, error) { return c.observed(st.work, d, m) })
}

// succeeded reports whether d has been handled before and only its ack was lost.
func (c *consumer) succeeded(d *delivery) bool {
	if !d.Redelivered || !c.lost.Take(&d.Delivery) {
		return false
	}
	c.log.Info("acked without running the handler again: it has succeeded, and its ack came too late", logkey.MessageID, d.MessageId)
	return true
}

// ask calls the hook with so many bytes of bodies, when it may be called, until it
// could be run.
func (c *consumer) ask(st stages, sub *subscription, bodies int, call func() (hooks.Outcome, error)) (outcome hooks.Outcome, answered bool) {
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
func (c *consumer) admit(st stages, sub *subscription, bodies int) (breaker.Token, memory.Share, bool) {
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
func (c *consumer) observed(work context.Context, d *delivery, m hooks.Message) (hooks.Outcome, error) {
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

// settle executes what package settle decides, once a reply is out.
func (c *consumer) settle(st stages, d *delivery, o hooks.Outcome) {
	if !c.reply(st, d, o) {
		return
	}
	facts := factsOf(d)
	steps := settle.Decide(facts, o, c.q.Policy)
	c.report(d, o, facts, steps)
	c.execute(st, d, o, steps)
}

// report logs a failed attempt, once, with what becomes of the message.
func (c *consumer) report(d *delivery, o hooks.Outcome, f settle.Facts, steps []settle.Step) {
	if o.Verdict == hooks.Ack && !c.log.Enabled(context.Background(), slog.LevelDebug) {
		return // of every message that goes well
	}
	attrs := []any{logkey.MessageID, d.MessageId, logkey.Attempt, d.reading.Attempt, logkey.Outcome, o.Verdict.String()}
	if o.Verdict == hooks.Ack {
		c.log.Debug("acked", attrs...)
		return
	}
	if o.Reason != "" {
		attrs = append(attrs, logkey.Reason, o.Reason)
	}
	if d.Redelivered {
		attrs = append(attrs, logkey.Redelivered, true)
	}
	c.log.Warn("handler failed", append(attrs, logkey.Next, next(f, steps, c.q.Policy))...)
}

// next says in a few words what the steps do to the message.
func next(f settle.Facts, steps []settle.Step, p settle.Policy) string {
	words := settle.Then(f, steps, p)
	for _, s := range steps {
		switch s := s.(type) {
		case settle.Copy:
			if s.Purpose == settle.ForDelay {
				return words + ", after " + max(s.To.Expiration, s.To.XDelay).String()
			}
		case settle.Later:
			return words + ", after " + s.After.String()
		case settle.Wait:
			return words + ", after " + s.For.String()
		}
	}
	return words
}
