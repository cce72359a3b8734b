package runtime

import (
	"cmp"
	"context"
	"time"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// execute carries out the steps that end a delivery. A copy that does not arrive
// is tried again while the delivery may be kept; then the steps of
// [settle.Recover] take over, so the message may be seen twice but is never lost.
func (c *consumer) execute(st stages, d *delivery, o hooks.Outcome, steps []settle.Step) {
	var later *settle.Later
	var share memory.Share // of later
	v := &vigil{c: c, st: st, d: d}
	defer v.end()
	for _, step := range steps {
		if d.sub.err() != nil {
			break // not settled here; finish says so
		}
		switch s := step.(type) {
		case settle.Warn:
			c.warned.rarely(string(s.What), logkey.MessageID, d.MessageId)
		case settle.Wait:
			backoff.Sleep(s.For, st.work.Done(), d.sub.ctx.Done())
		case settle.Pace:
			backoff.Sleep(s.Age-time.Since(d.arrived), st.intake.Done(), d.sub.ctx.Done())
		case settle.Copy:
			if err := c.arrive(v, c.outgoing(d, o, s)); err != nil {
				c.copyFailed(v, o, s, err)
				return
			}
		case settle.Later:
			// Once the original is settled, a copy that can never be sent would be lost.
			if err := c.pub.fits(c.outgoing(d, o, s.Copy), d.sub.frame); err != nil {
				c.copyFailed(v, o, s.Copy, err)
				return
			}
			if room, ok := c.timers.Reserve(st.work, d.sub.ctx, len(d.Body)); ok {
				later, share = &s, room
			} else if err := c.arrive(v, c.outgoing(d, o, s.Copy)); err != nil { // nothing may wait any more: early, not lost
				c.copyFailed(v, o, s.Copy, err)
				return
			}
		}
	}
	last := steps[len(steps)-1]
	if c.deadLetters(d, last) && !c.safeToDie(v, o) {
		return
	}
	c.end(d, o, last, later, share)
}

// end sends the settling frame and, once it is out, lets the timer have the
// copy. A copy is not held for an original that the broker will redeliver.
func (c *consumer) end(d *delivery, o hooks.Outcome, step settle.Step, later *settle.Later, share memory.Share) {
	settled := c.finish(d, step, o)
	switch {
	case later == nil:
	case !settled:
		c.timers.Release(share)
	default:
		c.timers.Add(time.Now().Add(later.After), c.outgoing(d, o, later.Copy), share)
	}
}

// finish sends the settling frame and reports whether it went out.
func (c *consumer) finish(d *delivery, step settle.Step, o hooks.Outcome) bool {
	c.requeued(d, step)
	err := d.settle(step)
	if err == nil {
		if o.Verdict == hooks.Ack && d.sub.revoked.Load() {
			c.ackedLate(d)
		}
		tell(c.obs, Settled{c.queue, Ending(o.Verdict.String()), c.spent(d, step, o)})
		return true
	}
	c.lose()
	c.short.result()
	attrs := []any{logkey.MessageID, d.MessageId, logkey.Attempt, d.reading.Attempt, logkey.Outcome, o.Verdict.String(), logkey.Error, err,
		logkey.HandlerAge, time.Since(d.arrived).Round(time.Millisecond)}
	switch {
	case o.Verdict != hooks.Ack:
		c.log.Warn("settlement lost; the broker redelivers the message and its handler runs again", attrs...)
	case c.lost.Remember(&d.Delivery):
		c.log.Warn("ack lost; the message has succeeded, and should this process get it again, it is acked without running its handler", append(attrs, c.endsOtherwise()...)...)
	default:
		c.log.Warn("ack lost, and not remembered; the message has succeeded, and its handler runs again when it comes again", append(attrs, logkey.Reason, c.forgets(d))...)
	}
	return false
}

// ackedLate remembers an ack that the broker may ignore, because it has requeued
// the delivery.
func (c *consumer) ackedLate(d *delivery) {
	attrs := []any{logkey.MessageID, d.MessageId, logkey.Attempt, d.reading.Attempt, logkey.HandlerAge, time.Since(d.arrived).Round(time.Millisecond)}
	if c.lost.Remember(&d.Delivery) {
		c.log.Warn("acked after the broker had cancelled the consumer; should the message come again, it is acked without running the handler", append(attrs, c.endsOtherwise()...)...)
		return
	}
	c.log.Warn("acked after the broker had cancelled the consumer; should the message come again, its handler runs again", append(attrs, logkey.Reason, c.forgets(d))...)
}

// endsOtherwise says what a remembered ack cannot prevent: the server counts each
// return of the message, also while its handler runs, and gives it up at its limit.
func (c *consumer) endsOtherwise() []any {
	p := c.q.Policy
	if p.Type != settle.Quorum || p.MaxAttempts == 0 {
		return nil
	}
	return []any{logkey.Next, "acked when it is delivered here again; a message whose returns have used up its attempts is in " + p.DeadLetter + " instead, although it has succeeded"}
}

// forgets says why the ack of d could not be remembered.
func (c *consumer) forgets(d *delivery) string {
	if d.MessageId == "" {
		return "it has no message_id, so nothing tells it from another"
	}
	return "too many acks are remembered already"
}

// spent reports whether step gives the message up after its last attempt. The
// server does it for a quorum queue, on the requeue that passes its limit.
func (c *consumer) spent(d *delivery, step settle.Step, o hooks.Outcome) bool {
	p := c.q.Policy
	if o.Verdict == hooks.Ack || o.Verdict == hooks.Drop || p.MaxAttempts == 0 || d.reading.Attempt < p.MaxAttempts {
		return false
	}
	return p.Type == settle.Quorum || step != settle.Step(settle.Reject{Requeue: true})
}

func (c *consumer) outgoing(d *delivery, o hooks.Outcome, s settle.Copy) *outgoing {
	f := message.Failure{Reason: cmp.Or(s.Reason, "max_attempts"), Error: o.Reason, At: time.Now(), Unseen: s.Unseen()}
	return &outgoing{
		queue:   c.queue,
		purpose: s.Purpose,
		Message: confirm.Message{
			Exchange:   s.To.Exchange,
			Key:        s.To.Key,
			Mandatory:  !s.To.NotMandatory,
			Publishing: c.copier.Copy(&d.Delivery, d.reading, s, f),
		},
	}
}

// lastCopies is how long a copy may take once work has ended: an alarm would keep
// a stopped process for as long as it lasts.
const lastCopies = 3 * time.Second

// publish sends out by way of a sender on behalf of d.
func (c *consumer) publish(st stages, d *delivery, by sender, out *outgoing) error {
	ctx, cancel := context.WithCancelCause(d.sub.ctx)
	defer cancel(nil)
	defer context.AfterFunc(st.work, func() {
		if backoff.Sleep(lastCopies, ctx.Done()) {
			cancel(context.Cause(st.work))
		}
	})()
	err := by.publish(ctx, out)
	if err == nil {
		c.pace.reset()
	}
	return err
}

func targetName(t settle.Target) string {
	if t.Exchange == "" {
		return t.Key
	}
	return t.Exchange + "/" + t.Key
}
