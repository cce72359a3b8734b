package runtime

import (
	"errors"
	"math/rand/v2"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// arrive publishes a copy, again and again, until it has arrived. It gives up on
// one that never can, and when the delivery can be kept no longer. Losing the
// subscription gives up, too: the original cannot be settled any more, so the copy
// would only double it.
func (c *consumer) arrive(v *vigil, out *outgoing) error {
	for {
		err := c.publish(v.st, v.d, c.pub, out)
		if err == nil || hopeless(err) || !v.again(nameOf(out), err) {
			return err
		}
	}
}

// copyFailed ends a delivery whose copy did not arrive. The hook is not run again
// here.
func (c *consumer) copyFailed(v *vigil, o hooks.Outcome, s settle.Copy, err error) {
	if !hopeless(err) {
		c.overdue(v, o, settle.CopyOverdue, err)
		return
	}
	attrs := []any{logkey.Target, targetName(s.To), logkey.MessageID, v.d.MessageId, logkey.Attempt, v.d.reading.Attempt, logkey.Error, err}
	what := "no room for a copy"
	if !errors.Is(err, confirm.ErrTooLarge) {
		what = "the copy is refused for what the message is"
	}
	if c.q.Policy.DeadLetter != "" {
		switch bareErr := c.recover(v, o, settle.CopyImpossible); {
		case bareErr == nil:
			c.log.Error(what+"; the message goes to its dead-letter queue without further attempts", attrs...)
			return
		case !hopeless(bareErr):
			c.overdue(v, o, settle.CopyOverdue, bareErr)
			return
		}
	}
	if c.routed().OwnRoute {
		c.log.Error(what+"; the original is rejected to the queue's dead-letter route", attrs...)
	} else {
		c.log.Error(what+" and no dead-letter route; the message stays in its queue", append(attrs, logkey.RetryIn, parkedFor)...)
		c.keepAside(v.st, v.d)
	}
	_ = c.recover(v, o, settle.BareImpossible) // it publishes nothing
}

// overdue ends a delivery that can be kept no longer.
func (c *consumer) overdue(v *vigil, o hooks.Outcome, e settle.Failure, err error) {
	if d := v.d; d.sub.err() == nil {
		c.log.Warn("the copy has not arrived and the message can be kept no longer; it goes back to its queue", logkey.MessageID, d.MessageId,
			logkey.Attempt, d.reading.Attempt, logkey.Error, err)
	}
	if c.recover(v, o, e) != nil {
		_ = c.recover(v, o, settle.KeepFailed) // it publishes nothing
	}
}

// recover carries out what package settle decides after a failure. An error is
// that of a copy; the delivery is then not settled.
func (c *consumer) recover(v *vigil, o hooks.Outcome, e settle.Failure) error {
	d := v.d
	for _, step := range settle.Recover(e, factsOf(d), c.routed()) {
		switch s := step.(type) {
		case settle.Copy:
			out := c.outgoing(d, o, s)
			if s.Bare {
				out.Publishing, out.NoSpare = c.copier.Bare(&d.Delivery), true
			}
			if err := c.recovered(v, e, out); err != nil {
				return err
			}
		case settle.HandBack:
			c.handBack(d)
		default:
			c.finish(d, step, o)
		}
	}
	return nil
}

// recovered publishes the copy of a recovery. A dead letter has time; what is put
// back because the time is up has none.
func (c *consumer) recovered(v *vigil, e settle.Failure, out *outgoing) error {
	if e == settle.CopyImpossible || e == settle.DeathBlocked {
		return c.arrive(v, out)
	}
	return c.publish(v.st, v.d, c.pub, out)
}

// routed is the queue's policy, with a route that only arguments give.
func (c *consumer) routed() settle.Policy {
	p := c.q.Policy
	p.OwnRoute = p.OwnRoute || c.q.DeadLetterRoute
	return p
}

func factsOf(d *delivery) settle.Facts {
	return settle.Facts{
		Attempt:     d.reading.Attempt,
		Counted:     d.reading.Counted,
		Redelivered: d.Redelivered,
		Jitter:      rand.Float64(),
	}
}

func nameOf(o *outgoing) string {
	return targetName(settle.Target{Exchange: o.Exchange, Key: o.Key})
}
