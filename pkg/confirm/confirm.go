// Package confirm publishes messages and knows what became of each.
//
// [Publisher] keeps a connection of its own open and publishes over confirm
// channels that messages share; [Channel] is one such channel, for who has a
// connection already. Either way a message has arrived only when the broker has
// confirmed it and has not returned it as unroutable before that; everything else
// is one of the errors below. What to do then is left to the caller.
package confirm

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
)

// Why a message has not arrived, or may not have. All but ErrTooLarge may pass with
// time. With ErrNoConfirm and ErrUnknown it may be there all the same, so sending
// it again can make a duplicate.
var (
	// ErrReturned follows basic.return, which the broker sends for a mandatory
	// message that no queue takes.
	ErrReturned = errors.New("the broker has no such queue or no binding to it")
	// ErrNacked follows basic.nack: a queue with overflow reject-publish is full, or
	// a queue failed to store the message.
	ErrNacked = errors.New("the broker refused it (nack): the queue is full or has failed")
	// ErrRefused is a channel that the broker closed over the message: no permission,
	// no such exchange, a property that it does not accept.
	ErrRefused = errors.New("refused by the broker")
	// ErrTooLarge is a message that does not fit into a frame, or whose body is over
	// the server's max_message_size. It is never sent again.
	ErrTooLarge = errors.New("too large")
	// ErrNoConfirm is a message that the broker has not answered within Config.Timeout.
	ErrNoConfirm = errors.New("no confirm in time")
	// ErrUnknown is a message whose connection ended before the broker's answer.
	ErrUnknown = errors.New("connection lost before the confirm")
	// ErrNotReady is a message that was not sent: there was no connection within
	// Config.Timeout.
	ErrNotReady = errors.New("no connection to publish on")
)

// Message is what is published, and where to.
type Message struct {
	Exchange, Key string
	// Mandatory messages are returned when no queue takes them. Without it, one that
	// the broker drops counts as arrived.
	Mandatory bool
	// NoSpare sends a message that fills its frame up to the end. The zero value
	// keeps room for the headers that the broker adds on the way, without which the
	// message could not be delivered again.
	NoSpare bool
	amqp.Publishing
}

// fitsFrame returns ErrTooLarge when the properties and headers of m take more than
// one frame, which AMQP does not allow. A frame of 0 has no limit.
func (m *Message) fitsFrame(frame int) error {
	if frame <= 0 {
		return nil
	}
	if !m.NoSpare {
		if message.Crowded(&m.Publishing) {
			return fmt.Errorf("%w: its %d headers leave no room for those of the broker", ErrTooLarge, len(m.Headers))
		}
		frame -= min(message.Spare, frame/2)
	}
	if size := message.HeaderFrameSize(&m.Publishing); size > frame {
		return fmt.Errorf("%w: properties and headers take %d bytes; %d fit into a frame beside what the broker may add", ErrTooLarge, size, frame)
	}
	return nil
}
