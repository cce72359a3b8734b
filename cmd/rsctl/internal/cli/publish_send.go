package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// destination is where a message is published; queue is set when it was named.
type destination struct{ exchange, key, queue string }

func (d destination) String() string {
	if d.queue != "" {
		return "queue " + quote(d.queue)
	}
	return fmt.Sprintf("exchange %q with routing key %q", d.exchange, d.key)
}

var (
	errUnroutable = errors.New("no queue took the message")
	errNacked     = errors.New("the broker refused the message: the queue is full or failed to store it")
)

// explain says what a failed publish means and what to do.
func (d destination) explain(err error, s *spec.Spec) error {
	var closed *amqp.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnroutable) && d.queue != "":
		return &negative{fmt.Sprintf("there is no queue %q%s", d.queue, didYouMean(d.queue, queueNames(s))), `"rsctl apply" declares the queues of the spec`}
	case errors.Is(err, errUnroutable):
		return &negative{fmt.Sprintf("no queue is bound to %s", d), ""}
	case errors.Is(err, errNacked):
		return &negative{fmt.Sprintf("%s: %v", d, err), ""}
	case errors.As(err, &closed) && closed.Code == amqp.NotFound:
		return &negative{fmt.Sprintf("there is no exchange %q", d.exchange), `"rsctl apply" declares the exchanges of the spec`}
	case errors.As(err, &closed) && closed.Code == amqp.AccessRefused:
		return &failure{fmt.Errorf("no permission to write to %s: %s", d, closed.Reason), "grant the user write permission on it"}
	case errors.As(err, &closed) && closed.Code == amqp.PreconditionFailed:
		return &negative{fmt.Sprintf("%s: the broker refused the message: %s", d, closed.Reason), ""}
	}
	return err
}

func queueNames(s *spec.Spec) []string {
	var names []string
	for _, q := range s.Queues {
		names = append(names, q.Name)
		if q.DeadLetter != "" {
			names = append(names, q.DeadLetter)
		}
	}
	return names
}

// batch is count messages alike but for their ids.
type batch struct {
	to    destination
	msg   amqp.Publishing
	id    string
	count int
}

// inFlight bounds the unconfirmed messages of a batch.
const inFlight = 256

// sendAll returns the ids of the confirmed messages, also when it fails.
func sendAll(ctx context.Context, b spec.Broker, m batch) ([]string, error) {
	conn, err := broker.Dial(ctx, b, "publish")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// A broker under an alarm stops reading; closing the connection is what ends
	// a publish that waits for it.
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(closeNow()) })
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	s := &sender{ch: ch, batch: m, closed: ch.NotifyClose(make(chan *amqp.Error, 1))}
	s.returns = ch.NotifyReturn(make(chan amqp.Return, inFlight+1))
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return s.run(ctx)
}

// sender publishes a batch on one channel, at most inFlight at a time.
type sender struct {
	batch
	ch      *amqp.Channel
	closed  chan *amqp.Error
	returns chan amqp.Return
	open    []pending
	sent    []string
}

type pending struct {
	id      string
	confirm *amqp.DeferredConfirmation
}

func (s *sender) run(ctx context.Context) ([]string, error) {
	for n := range s.count {
		if len(s.open) == inFlight {
			if err := s.settle(ctx); err != nil {
				return s.sent, err
			}
		}
		msg := s.msg
		msg.MessageId = s.messageID(n)
		confirm, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, s.to.exchange, s.to.key, true, false, msg)
		if err != nil {
			return s.sent, s.cause(err)
		}
		s.open = append(s.open, pending{msg.MessageId, confirm})
	}
	for len(s.open) > 0 {
		if err := s.settle(ctx); err != nil {
			return s.sent, err
		}
	}
	return s.sent, nil
}

// settle waits for the oldest message. A return always arrives before the
// confirm of the same message.
func (s *sender) settle(ctx context.Context) error {
	p := s.open[0]
	s.open = s.open[1:]
	ok, err := p.confirm.WaitContext(ctx)
	switch {
	case err != nil:
		return err
	case !ok:
		return s.cause(errNacked)
	}
	select {
	case <-s.returns:
		return errUnroutable
	default:
	}
	s.sent = append(s.sent, p.id)
	return nil
}

// cause prefers the server's reason for closing the channel over err.
func (s *sender) cause(err error) error {
	select {
	case closed, ok := <-s.closed:
		if ok && closed != nil {
			return closed
		}
	default:
	}
	return err
}

func (s *sender) messageID(n int) string {
	switch {
	case s.id == "":
		return rand.Text()
	case s.count == 1:
		return s.id
	}
	return fmt.Sprintf("%s-%d", s.id, n+1)
}
