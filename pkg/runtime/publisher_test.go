package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestTheServersLimitOfABodyIsLearnedFromItsRefusal(t *testing.T) {
	t.Parallel()
	refused := func(code int, reason string) error {
		return fmt.Errorf("%w: %w", errRefused, &amqp.Error{Code: code, Reason: reason, Server: true})
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
		{"a nack teaches nothing", errNacked, false, 0},
		{"a success teaches nothing", nil, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, _ := bufferedLog()
			p := newPublisher(Config{Log: log, ConfirmTimeout: time.Millisecond})
			got := p.learn(tt.err)
			if errors.Is(got, errTooLarge) != tt.tooBig {
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

func TestABodyOverTheLearnedLimitIsNotSent(t *testing.T) {
	t.Parallel()
	log, _ := bufferedLog()
	p := newPublisher(Config{Log: log, ConfirmTimeout: time.Millisecond})
	p.maxBody.Store(10)
	err := p.publish(t.Context(), &outgoing{msg: amqp.Publishing{Body: make([]byte, 11)}})
	if !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), "11 bytes, the broker takes 10") {
		t.Errorf("publish() = %v", err)
	}
	err = p.publish(t.Context(), &outgoing{msg: amqp.Publishing{Body: make([]byte, 10)}})
	if !errors.Is(err, errNotReady) {
		t.Errorf("publish() of a body at the limit = %v, want it to wait for a connection", err)
	}
}

func TestHeadersAreMeasuredAgainstTheFrame(t *testing.T) {
	t.Parallel()
	p := newPublisher(Config{})
	o := &outgoing{msg: amqp.Publishing{Headers: amqp.Table{"h": strings.Repeat("x", 10_000)}}}
	size := message.HeaderFrameSize(&o.msg) + message.Spare
	for frame, fits := range map[int]bool{0: true, size - 1: false, size: true, size + 1: true} {
		if err := p.fits(o, frame); (err == nil) != fits || (err != nil && !errors.Is(err, errTooLarge)) {
			t.Errorf("a header frame of %d bytes in frames of %d: %v, want fits %v", size, frame, err, fits)
		}
	}
	o.bare = true
	size -= message.Spare
	if err := p.fits(o, size); err != nil {
		t.Errorf("the last resort uses all there is: %v", err)
	}
	if err := p.fits(o, size-1); !errors.Is(err, errTooLarge) {
		t.Errorf("beyond the frame: %v", err)
	}
	many := &outgoing{msg: amqp.Publishing{Headers: amqp.Table{}}}
	for i := range 8192 - message.SpareEntries {
		many.msg.Headers[fmt.Sprint(i)] = nil
	}
	if err := p.fits(many, 1<<20); err != nil {
		t.Errorf("as many headers as there may be: %v", err)
	}
	many.msg.Headers["more"] = nil
	if err := p.fits(many, 1<<20); !errors.Is(err, errTooLarge) {
		t.Errorf("one header more: %v", err)
	}
}

// received is one delivery of queue with the consumer that would settle it. Its
// copies go to s.
func (b *bench) received(q Queue, s sender) (*consumer, *delivery) {
	b.t.Helper()
	log := b.config().Log
	c := newConsumer(q, s, newTimers(s, make(chan struct{}, 1), log), log)
	sess, end := watch(b.t.Context(), b.conn)
	b.t.Cleanup(end)
	sub, deliveries, err := c.subscribe(stages{b.t.Context(), b.t.Context()}, sess)
	if err != nil {
		b.t.Fatal(err)
	}
	c.handlers.Go(sub.watch)
	b.t.Cleanup(func() { sub.end(errChannelClosed); c.handlers.Wait() })
	select {
	case raw := <-deliveries:
		d := &delivery{Delivery: raw, sub: sub, arrived: time.Now()}
		d.reading = message.Read(c.queue, q.Policy.Type, &d.Delivery)
		return c, d
	case <-time.After(patience):
		b.t.Fatal("no delivery")
	}
	return nil, nil
}

func TestAMessageTooLargeForACopyEndsTheBestWayThereIs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		deadLetter bool // in the policy
		bareFits   bool
		route      bool // a dead-letter route of the queue's own
		tries      int  // of copies
		queue, own int  // messages left in the queue and in the route's
		log        string
	}{
		{"a bare copy to the dead-letter queue comes first", true, true, true, 2, 0, 1, "goes to its dead-letter queue without further attempts"},
		{"the queue's own route is next", true, false, true, 2, 0, 1, "rejected to the queue's dead-letter route"},
		{"without a dead_letter no bare copy is tried", false, true, true, 1, 0, 1, "rejected to the queue's dead-letter route"},
		{"with neither it is kept", true, false, false, 2, 1, 0, "the message stays in its queue"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			own := b.queue(settle.Classic, nil)
			args := amqp.Table{}
			if tt.route {
				args = amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": own}
			}
			p := settle.Policy{Queue: b.queue(settle.Classic, args), Type: settle.Classic, MaxAttempts: 3}
			if tt.deadLetter {
				p.DeadLetter = "dead"
			}
			b.publish(p.Queue, amqp.Publishing{MessageId: "fat"})
			s := &stubSender{answer: func(o *outgoing) error {
				if bare := len(o.msg.Headers) == 0; bare && tt.bareFits {
					return nil
				}
				return errTooLarge
			}}
			c, d := b.received(Queue{Policy: p, Prefetch: 1, DeadLetterRoute: tt.route}, s)
			intake, stop := context.WithCancel(t.Context())
			stop() // ends the long pause of a message that is kept
			c.settle(stages{intake, t.Context()}, d, hooks.Outcome{Verdict: hooks.Retry})
			d.sub.end(errChannelClosed)
			b.eventually(fmt.Sprintf("%d in the queue, %d in the route's", tt.queue, tt.own), func() bool {
				return b.ready(p.Queue) == tt.queue && b.ready(own) == tt.own
			})
			want := []string{"/" + p.Queue + " fat", "/dead fat"}[:tt.tries]
			if got := s.seen(); !slices.Equal(got, want) {
				t.Errorf("tried to publish %q, want %q", got, want)
			}
			if !b.log.has(tt.log) {
				t.Errorf("the log does not say %q:\n%s", tt.log, b.log)
			}
		})
	}
}

func TestAMessageWithNoRoomForACopyIsNotHeldInTheProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Classic, 3)
	b.publish(p.Queue, amqp.Publishing{MessageId: "fat", Headers: amqp.Table{"h": strings.Repeat("x", 131_020)}})
	hook := &recorder{reply: func(hooks.Message) hooks.Outcome {
		return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Millisecond}
	}}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	if dead := b.get(p.DeadLetter); dead.MessageId != "fat" {
		t.Errorf("dead-lettered %q", dead.MessageId)
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if b.log.has("held copy") || b.log.has("lost") {
		t.Error("a copy that can never be sent was held")
	}
}
