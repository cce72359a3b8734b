package closing

import (
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errLost = errors.New("connection lost")

func TestCauseIsBothErrorsInOneLine(t *testing.T) {
	t.Parallel()
	why := &amqp.Error{Code: amqp.ConnectionForced, Reason: "CONNECTION_FORCED - node stops", Server: true}
	err := Cause(errLost, why)
	if got, want := err.Error(), "connection lost: 320 CONNECTION_FORCED - node stops"; got != want {
		t.Errorf("Cause() = %q, want %q", got, want)
	}
	var reason *amqp.Error
	if !errors.Is(err, errLost) || !errors.As(err, &reason) || reason != why {
		t.Errorf("%v does not unwrap to both", err)
	}
	if got := Cause(errLost, nil); got != errLost {
		t.Errorf("Cause() without the broker's words = %v", got)
	}
}

func TestTextNamesTheCodeAndTheReason(t *testing.T) {
	t.Parallel()
	for want, why := range map[string]*amqp.Error{
		"":                         nil,
		"404":                      {Code: 404},
		"404 NOT_FOUND - no queue": {Code: 404, Reason: "NOT_FOUND - no queue"},
	} {
		if got := Text(why); got != want {
			t.Errorf("Text(%v) = %q, want %q", why, got, want)
		}
	}
}

func TestEndsConnectionFollowsTheClassesOfAMQP(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{
		amqp.ContentTooLarge: false, amqp.NoRoute: false, amqp.AccessRefused: false, amqp.NotFound: false,
		amqp.ResourceLocked: false, amqp.PreconditionFailed: false,
		amqp.ConnectionForced: true, amqp.InvalidPath: true, amqp.FrameError: true, amqp.SyntaxError: true,
		amqp.CommandInvalid: true, amqp.ChannelError: true, amqp.UnexpectedFrame: true, amqp.ResourceError: true,
		amqp.NotAllowed: true, amqp.NotImplemented: true, amqp.InternalError: true,
	} {
		if got := EndsConnection(&amqp.Error{Code: code}); got != want {
			t.Errorf("EndsConnection(%d) = %v, want %v", code, got, want)
		}
	}
}

func TestConnTakesNoConnectionForNone(t *testing.T) {
	t.Parallel()
	Conn(nil)
}
