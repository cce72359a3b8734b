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
func (c *consumer) reply(st stages, d *delivery, o hooks.Outcome) bool {
	if !c.q.Reply || o.Verdict != hooks.Ack || o.Reply == nil || d.ReplyTo == "" {
		return true
	}
	err := c.sendReply(st, d, o)
	switch {
	case err == nil:
	case errors.Is(err, errBadAddress):
		c.warned.rarely("no reply is sent to this address; the request is acked all the same",
			logkey.Target, d.ReplyTo, logkey.MessageID, d.MessageId, logkey.Error, err)
	case nobodyTakes(err):
		c.warned.rarely("reply not delivered: nobody takes it; the request is acked all the same",
			logkey.Target, d.ReplyTo, logkey.MessageID, d.MessageId, logkey.Error, err)
	default:
		c.replyFailed(st, d, err)
		return false
	}
	return true
}

// sendReply publishes the reply, unless its address is not one that gets any.
func (c *consumer) sendReply(st stages, d *delivery, o hooks.Outcome) error {
	if err := replyto.Check(d.ReplyTo, c.q.ReplyTo); err != nil {
		tellForbidden(c.obs, c.queue)
		return fmt.Errorf("%w: %w", errBadAddress, err)
	}
	return c.publish(st, d, c.replies, c.replyTo(d, o))
}

// replyTo is the reply as it is published. It is mandatory, so that a requester
// whose queue has gone is noticed, but not for direct reply-to: 3.10 and 4.0
// return everything that goes there, delivered or not, and 4.3 does not tell that
// a channel has ended.
func (c *consumer) replyTo(d *delivery, o hooks.Outcome) *outgoing {
	return &outgoing{
		queue:   c.queue,
		purpose: settle.ForReply,
		Message: confirm.Message{
			Key:       d.ReplyTo,
			Mandatory: !replyto.Direct(d.ReplyTo),
			Publishing: amqp.Publishing{
				CorrelationId: d.CorrelationId,
				ContentType:   o.ReplyType,
				DeliveryMode:  d.DeliveryMode,
				Timestamp:     time.Now(),
				Body:          o.Reply,
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
func (c *consumer) replyFailed(st stages, d *delivery, err error) {
	pause := c.pace.next()
	if d.sub.err() == nil {
		c.log.Error("reply not confirmed; the request goes back to its queue", logkey.Target, d.ReplyTo, logkey.MessageID, d.MessageId,
			logkey.Attempt, d.reading.Attempt, logkey.Error, err, logkey.RetryIn, pause.Round(time.Millisecond))
		backoff.Sleep(pause, st.intake.Done(), d.sub.ctx.Done())
	}
	o := hooks.Outcome{Verdict: hooks.Retry, Reason: err.Error()}
	_ = c.recover(&vigil{c: c, st: st, d: d}, o, settle.ReplyUnconfirmed) // it publishes nothing
}
