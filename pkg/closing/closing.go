// Package closing closes AMQP connections and says why they, or channels of
// theirs, have ended.
package closing

import (
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// timeout is how long a connection may take to say goodbye.
const timeout = 5 * time.Second

// ReasonWithin is how long after the end of a channel the client library may take
// to say why: a moment, but on a busy machine.
const ReasonWithin = 5 * time.Second

// Conn closes a connection that is open. It waits for the broker's answer for five
// seconds at most. A nil connection is none.
func Conn(conn *amqp.Connection) {
	if conn != nil && !conn.IsClosed() {
		_ = conn.CloseDeadline(time.Now().Add(timeout)) // nothing to do about a connection that will not say goodbye
	}
}

// Cause adds the broker's words, when there are any, to err. What it returns
// unwraps to both.
func Cause(err error, why *amqp.Error) error {
	if why == nil {
		return err
	}
	return &cause{err, why}
}

// cause says that a channel or a connection ended and what was said about it.
type cause struct {
	what error
	why  *amqp.Error
}

func (e *cause) Error() string   { return e.what.Error() + ": " + Text(e.why) }
func (e *cause) Unwrap() []error { return []error{e.what, e.why} }

// Text is the broker's reason without the library's wrapping.
func Text(why *amqp.Error) string {
	if why == nil {
		return ""
	}
	if why.Reason == "" {
		return strconv.Itoa(why.Code)
	}
	return strconv.Itoa(why.Code) + " " + why.Reason
}

// EndsConnection reports whether the broker closes the whole connection with why,
// by AMQP's classes of errors. It then says nothing about one message or channel.
func EndsConnection(why *amqp.Error) bool {
	switch why.Code {
	case amqp.ConnectionForced, amqp.InvalidPath, amqp.FrameError, amqp.SyntaxError, amqp.CommandInvalid,
		amqp.ChannelError, amqp.UnexpectedFrame, amqp.ResourceError, amqp.NotAllowed, amqp.NotImplemented, amqp.InternalError:
		return true
	}
	return false
}
