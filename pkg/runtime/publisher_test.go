package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/held"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// received is one delivery of queue with the consumer that would settle it. Its
// copies go to s.
func (b *bench) received(q Queue, s sender) (*consumer, *delivery) {
	b.t.Helper()
	log := b.config().Log
	c := newConsumer(q, shared{pub: s, room: held.NewRoom(), log: log})
	sess, end := watch(b.t.Context(), b.conn)
	b.t.Cleanup(end)
	sub, deliveries, err := c.subscribe(lifetimes{b.t.Context(), b.t.Context()}, sess)
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
				if bare := len(o.Publishing.Headers) == 0; bare && tt.bareFits {
					return nil
				}
				return confirm.ErrTooLarge
			}}
			c, d := b.received(Queue{Policy: p, Prefetch: 1, DeadLetterRoute: tt.route}, s)
			intake, stop := context.WithCancel(t.Context())
			stop() // ends the long pause of a message that is kept
			c.settlement(lifetimes{intake, t.Context()}, d, hooks.Outcome{Verdict: hooks.Retry}).settle()
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
