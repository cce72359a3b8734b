package confirm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
)

func TestPublisherLearnsTheServersLimitOfABodyFromItsRefusal(t *testing.T) {
	t.Parallel()
	refused := func(code int, reason string) error {
		return fmt.Errorf("%w: %w", ErrRefused, &amqp.Error{Code: code, Reason: reason, Server: true})
	}
	tests := []struct {
		name    string
		err     error
		tooBig  bool
		learned int64
	}{
		{"the broker's words are understood",
			refused(406, "PRECONDITION_FAILED - message size 17825792 is larger than configured max size 16777216"), true, 16777216},
		{"a limit beyond any integer is not kept, the refusal is still final",
			refused(406, "PRECONDITION_FAILED - message size 1 is larger than configured max size 99999999999999999999"), true, 0},
		{"another 406 says nothing about size",
			refused(406, "PRECONDITION_FAILED - user_id property set to 'a' but authenticated user was 'b'"), false, 0},
		{"a 403 with the same words is a refusal", refused(403, "message size 9 is larger than configured max size 8"), false, 0},
		{"a nack teaches nothing", ErrNacked, false, 0},
		{"a success teaches nothing", nil, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := New(Config{})
			got := p.learn(tt.err)
			if errors.Is(got, ErrTooLarge) != tt.tooBig {
				t.Errorf("learn() = %v; too large: want %v", got, tt.tooBig)
			}
			if !tt.tooBig && got != tt.err {
				t.Errorf("learn() = %v, want the error as it was", got)
			}
			if limit := p.maxBody.Load(); limit != tt.learned {
				t.Errorf("the limit is taken to be %d, want %d", limit, tt.learned)
			}
		})
	}
}

func TestPublisherSendsNoBodyOverTheLearnedLimit(t *testing.T) {
	t.Parallel()
	p := New(Config{Timeout: time.Millisecond})
	p.maxBody.Store(10)
	err := p.Publish(t.Context(), &Message{Publishing: amqp.Publishing{Body: make([]byte, 11)}})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "11 bytes, the broker takes 10") {
		t.Errorf("Publish() = %v", err)
	}
	err = p.Publish(t.Context(), &Message{Publishing: amqp.Publishing{Body: make([]byte, 10)}})
	if !errors.Is(err, ErrNotReady) {
		t.Errorf("Publish() of a body at the limit = %v, want it to wait for a connection", err)
	}
}

func TestMessageIsMeasuredAgainstTheFrame(t *testing.T) {
	t.Parallel()
	m := &Message{Publishing: amqp.Publishing{Headers: amqp.Table{"h": strings.Repeat("x", 10_000)}}}
	size := message.HeaderFrameSize(&m.Publishing) + message.Spare
	for frame, fits := range map[int]bool{0: true, size - 1: false, size: true, size + 1: true} {
		if err := m.fitsFrame(frame); (err == nil) != fits || (err != nil && !errors.Is(err, ErrTooLarge)) {
			t.Errorf("a header frame of %d bytes in frames of %d: %v, want fits %v", size, frame, err, fits)
		}
	}
	m.NoSpare = true
	size -= message.Spare
	if err := m.fitsFrame(size); err != nil {
		t.Errorf("the last resort uses all there is: %v", err)
	}
	if err := m.fitsFrame(size - 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the frame: %v", err)
	}
	many := &Message{Publishing: amqp.Publishing{Headers: amqp.Table{}}}
	for i := range 8192 - message.SpareEntries {
		many.Headers[fmt.Sprint(i)] = nil
	}
	if err := many.fitsFrame(1 << 20); err != nil {
		t.Errorf("as many headers as there may be: %v", err)
	}
	many.Headers["more"] = nil
	if err := many.fitsFrame(1 << 20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one header more: %v", err)
	}
}
