package runtime

import (
	"errors"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// arrive publishes a copy, again and again, until it has arrived. It gives up on
// one that never can, and when the delivery can be kept no longer. Losing the
// subscription gives up, too: the original cannot be settled any more, so the copy
// would only double it.
func (s *settlement) arrive(out *outgoing) error {
	for {
		err := s.publish(s.pub, out)
		if err == nil || hopeless(err) || !s.again(nameOf(out), err) {
			return err
		}
	}
}

// copyFailed ends a delivery whose copy did not arrive. The hook is not run again
// here.
func (s *settlement) copyFailed(c settle.Copy, err error) {
	if !hopeless(err) {
		s.overdue(settle.CopyOverdue, err)
		return
	}
	attrs := []any{logkey.Target, targetName(c.To), logkey.MessageID, s.d.MessageId, logkey.Attempt, s.d.reading.Attempt, logkey.Error, err}
	what := "no room for a copy"
	if !errors.Is(err, confirm.ErrTooLarge) {
		what = "the copy is refused for what the message is"
	}
	if s.q.Policy.DeadLetter != "" {
		switch bareErr := s.recover(settle.CopyImpossible); {
		case bareErr == nil:
			s.log.Error(what+"; the message goes to its dead-letter queue without further attempts", attrs...)
			return
		case !hopeless(bareErr):
			s.overdue(settle.CopyOverdue, bareErr)
			return
		}
	}
	if s.routed().OwnRoute {
		s.log.Error(what+"; the original is rejected to the queue's dead-letter route", attrs...)
	} else {
		s.log.Error(what+" and no dead-letter route; the message stays in its queue", append(attrs, logkey.RetryIn, parkedFor)...)
		s.from.keepAside(s.st, s.d)
	}
	_ = s.recover(settle.BareImpossible) // it publishes nothing
}

// overdue ends a delivery that can be kept no longer.
func (s *settlement) overdue(e settle.Failure, err error) {
	if s.d.sub.err() == nil {
		s.log.Warn("the copy has not arrived and the message can be kept no longer; it goes back to its queue", logkey.MessageID, s.d.MessageId,
			logkey.Attempt, s.d.reading.Attempt, logkey.Error, err)
	}
	if s.recover(e) != nil {
		_ = s.recover(settle.KeepFailed) // it publishes nothing
	}
}

// recover carries out what package settle decides after a failure. An error is
// that of a copy; the delivery is then not settled.
func (s *settlement) recover(e settle.Failure) error {
	for _, step := range settle.Recover(e, factsOf(s.d), s.routed()) {
		switch step := step.(type) {
		case settle.Copy:
			out := s.outgoing(step)
			if step.Bare {
				out.Publishing, out.NoSpare = s.copier.Bare(&s.d.Delivery), true
			}
			if err := s.recovered(e, out); err != nil {
				return err
			}
		case settle.HandBack:
			s.from.handBack(s.d)
		default:
			s.finish(step)
		}
	}
	return nil
}

// recovered publishes the copy of a recovery. A dead letter has time; what is put
// back because the time is up has none.
func (s *settlement) recovered(e settle.Failure, out *outgoing) error {
	if e == settle.CopyImpossible || e == settle.DeathBlocked {
		return s.arrive(out)
	}
	return s.publish(s.pub, out)
}
