package runtime

import (
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// finish sends the settling frame and reports whether it went out.
func (s *settlement) finish(step settle.Step) bool {
	s.requeued(step)
	err := s.d.settle(step)
	if err == nil {
		if s.o.Verdict == hooks.Ack && s.d.sub.revoked.Load() {
			s.ackedLate()
		}
		tell(s.obs, Settled{s.queue, Ending(s.o.Verdict.String()), s.spent(step)})
		return true
	}
	s.lose()
	s.short.result()
	attrs := []any{logkey.MessageID, s.d.MessageId, logkey.Attempt, s.d.reading.Attempt, logkey.Outcome, s.o.Verdict.String(), logkey.Error, err,
		logkey.HandlerAge, time.Since(s.d.arrived).Round(time.Millisecond)}
	switch {
	case s.o.Verdict != hooks.Ack:
		s.log.Warn("settlement lost; the broker redelivers the message and its handler runs again", attrs...)
	case s.lost.Remember(&s.d.Delivery):
		s.log.Warn("ack lost; the message has succeeded, and should this process get it again, it is acked without running its handler", append(attrs, s.endsOtherwise()...)...)
	default:
		s.log.Warn("ack lost, and not remembered; the message has succeeded, and its handler runs again when it comes again", append(attrs, logkey.Reason, s.forgets())...)
	}
	return false
}

// ackedLate remembers an ack that the broker may ignore, because it has requeued
// the delivery.
func (s *settlement) ackedLate() {
	attrs := []any{logkey.MessageID, s.d.MessageId, logkey.Attempt, s.d.reading.Attempt, logkey.HandlerAge, time.Since(s.d.arrived).Round(time.Millisecond)}
	if s.lost.Remember(&s.d.Delivery) {
		s.log.Warn("acked after the broker had cancelled the consumer; should the message come again, it is acked without running the handler", append(attrs, s.endsOtherwise()...)...)
		return
	}
	s.log.Warn("acked after the broker had cancelled the consumer; should the message come again, its handler runs again", append(attrs, logkey.Reason, s.forgets())...)
}

// endsOtherwise says what a remembered ack cannot prevent: the server counts each
// return of the message, also while its handler runs, and gives it up at its limit.
func (r *settler) endsOtherwise() []any {
	p := r.q.Policy
	if p.Type != settle.Quorum || p.MaxAttempts == 0 {
		return nil
	}
	return []any{logkey.Next, "acked when it is delivered here again; a message whose returns have used up its attempts is in " + p.DeadLetter + " instead, although it has succeeded"}
}

// forgets says why the ack could not be remembered.
func (s *settlement) forgets() string {
	if s.d.MessageId == "" {
		return "it has no message_id, so nothing tells it from another"
	}
	return "too many acks are remembered already"
}

// spent reports whether step gives the message up after its last attempt. The
// server does it for a quorum queue, on the requeue that passes its limit.
func (s *settlement) spent(step settle.Step) bool {
	p := s.q.Policy
	if s.o.Verdict == hooks.Ack || s.o.Verdict == hooks.Drop || p.MaxAttempts == 0 || s.d.reading.Attempt < p.MaxAttempts {
		return false
	}
	return p.Type == settle.Quorum || step != settle.Step(settle.Reject{Requeue: true})
}

// requeued notes that a message was given back to a quorum queue.
func (s *settlement) requeued(step settle.Step) {
	if step == (settle.Reject{Requeue: true}) && s.q.Policy.Type == settle.Quorum {
		s.own.Add(&s.d.Delivery)
		now := time.Now()
		s.returned.Store(&now)
	}
}
