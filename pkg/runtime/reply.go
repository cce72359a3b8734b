package runtime

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/replyto"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// reply publishes what an acknowledging hook answers to the sender of the
// request, and reports whether the delivery may now be settled as decided; else
// it has been given back. The ack waits for the reply's confirm, so a crash in
// between makes a second reply, never a missing one.
func (s *settlement) reply() bool {
	if !s.q.Reply || s.o.Verdict != hooks.Ack || s.o.Reply == nil || s.d.ReplyTo == "" {
		return true
	}
	err := s.sendReply()
	switch {
	case err == nil:
	case errors.Is(err, errBadAddress):
		s.warned.rarely("no reply is sent to this address; the request is acked all the same",
			logkey.Target, s.d.ReplyTo, logkey.MessageID, s.d.MessageId, logkey.Error, err)
	case nobodyTakes(err):
		s.warned.rarely("reply not delivered: nobody takes it; the request is acked all the same",
			logkey.Target, s.d.ReplyTo, logkey.MessageID, s.d.MessageId, logkey.Error, err)
	default:
		s.replyFailed(err)
		return false
	}
	return true
}

// sendReply publishes the reply, unless its address is not one that gets any.
func (s *settlement) sendReply() error {
	if err := replyto.Check(s.d.ReplyTo, s.q.ReplyTo); err != nil {
		tellForbidden(s.obs, s.queue)
		return fmt.Errorf("%w: %w", errBadAddress, err)
	}
	return s.publish(s.replies, s.replyTo())
}

// replyTo is the reply as it is published. It is mandatory, so that a requester
// whose queue has gone is noticed, but not for direct reply-to: 3.10 and 4.0
// return everything that goes there, delivered or not, and 4.3 does not tell that
// a channel has ended.
func (s *settlement) replyTo() *outgoing {
	return &outgoing{
		queue:   s.queue,
		purpose: settle.ForReply,
		Message: confirm.Message{
			Key:       s.d.ReplyTo,
			Mandatory: !replyto.Direct(s.d.ReplyTo),
			Publishing: amqp.Publishing{
				CorrelationId: s.d.CorrelationId,
				ContentType:   s.o.ReplyType,
				DeliveryMode:  s.d.DeliveryMode,
				Timestamp:     time.Now(),
				Body:          s.o.Reply,
			},
		},
	}
}

// nobodyTakes reports whether the broker itself has said no to a reply. Trying
// again would run the hook again, for a requester who is not there or not able
// to take it.
func nobodyTakes(err error) bool {
	for _, no := range []error{confirm.ErrReturned, confirm.ErrNacked, confirm.ErrRefused, confirm.ErrTooLarge} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// replyFailed gives back a delivery whose reply may not have arrived: the hook
// runs again, at a pace that cannot spin.
func (s *settlement) replyFailed(err error) {
	pause := s.pace.delay()
	if s.d.sub.err() == nil {
		s.log.Error("reply not confirmed; the request goes back to its queue", logkey.Target, s.d.ReplyTo, logkey.MessageID, s.d.MessageId,
			logkey.Attempt, s.d.reading.Attempt, logkey.Error, err, logkey.RetryIn, pause.Round(time.Millisecond))
		backoff.Sleep(pause, s.st.intake.Done(), s.d.sub.ctx.Done())
	}
	s.o = hooks.Outcome{Verdict: hooks.Retry, Reason: err.Error()}
	_ = s.recover(settle.ReplyUnconfirmed) // it publishes nothing
}
