package runtime

import (
	"cmp"
	"context"
	"time"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// execute carries out the steps that end a delivery. A copy that does not arrive
// is tried again while the delivery may be kept; then the steps of
// [settle.Recover] take over, so the message may be seen twice but is never lost.
func (s *settlement) execute(steps []settle.Step) {
	var later *settle.Later
	var share memory.Share // of later
	defer s.goOn()
	for _, step := range steps {
		if s.d.sub.err() != nil {
			break // not settled here; finish says so
		}
		switch step := step.(type) {
		case settle.Warn:
			s.warned.rarely(string(step.What), logkey.MessageID, s.d.MessageId)
		case settle.Wait:
			backoff.Sleep(step.For, s.st.work.Done(), s.d.sub.ctx.Done())
		case settle.Pace:
			backoff.Sleep(step.Age-time.Since(s.d.arrived), s.st.intake.Done(), s.d.sub.ctx.Done())
		case settle.Copy:
			if err := s.arrive(s.outgoing(step)); err != nil {
				s.copyFailed(step, err)
				return
			}
		case settle.Later:
			// Once the original is settled, a copy that can never be sent would be lost.
			if err := s.pub.fits(s.outgoing(step.Copy), s.d.sub.frame); err != nil {
				s.copyFailed(step.Copy, err)
				return
			}
			if room, ok := s.timers.Reserve(s.st.work, s.d.sub.ctx, len(s.d.Body)); ok {
				later, share = &step, room
			} else if err := s.arrive(s.outgoing(step.Copy)); err != nil { // nothing may wait any more: early, not lost
				s.copyFailed(step.Copy, err)
				return
			}
		}
	}
	last := steps[len(steps)-1]
	if s.deadLetters(last) && !s.safeToDie() {
		return
	}
	s.end(last, later, share)
}

// end sends the settling frame and, once it is out, lets the timer have the
// copy. A copy is not held for an original that the broker will redeliver.
func (s *settlement) end(step settle.Step, later *settle.Later, share memory.Share) {
	settled := s.finish(step)
	switch {
	case later == nil:
	case !settled:
		s.timers.Release(share)
	default:
		s.timers.Add(time.Now().Add(later.After), s.outgoing(later.Copy), share)
	}
}

func (s *settlement) outgoing(c settle.Copy) *outgoing {
	f := message.Failure{Reason: cmp.Or(c.Reason, "max_attempts"), Error: s.o.Reason, At: time.Now(), Unseen: c.Unseen()}
	return &outgoing{
		queue:   s.queue,
		purpose: c.Purpose,
		Message: confirm.Message{
			Exchange:   c.To.Exchange,
			Key:        c.To.Key,
			Mandatory:  !c.To.NotMandatory,
			Publishing: s.copier.Copy(&s.d.Delivery, s.d.reading, c, f),
		},
	}
}

// lastCopies is how long a copy may take once work has ended: an alarm would keep
// a stopped process for as long as it lasts.
const lastCopies = 3 * time.Second

// publish sends out by way of a sender on behalf of the delivery.
func (s *settlement) publish(by sender, out *outgoing) error {
	work := s.st.work // s itself stays on the stack
	ctx, cancel := context.WithCancelCause(s.d.sub.ctx)
	defer cancel(nil)
	defer context.AfterFunc(work, func() {
		if backoff.Sleep(lastCopies, ctx.Done()) {
			cancel(context.Cause(work))
		}
	})()
	err := by.publish(ctx, out)
	if err == nil {
		s.pace.reset()
	}
	return err
}
