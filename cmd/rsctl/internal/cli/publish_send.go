package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
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

// explain says what a failed publish means and what to do.
func (d destination) explain(err error, s *spec.Spec) error {
	var closed *amqp.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, confirm.ErrReturned) && d.queue != "":
		return &negative{fmt.Sprintf("there is no queue %q%s", d.queue, didYouMean(d.queue, queueNames(s))), `"rsctl apply" declares the queues of the spec`}
	case errors.Is(err, confirm.ErrReturned):
		return &negative{fmt.Sprintf("no queue is bound to %s", d), ""}
	case errors.Is(err, confirm.ErrNacked):
		return &negative{fmt.Sprintf("%s: the broker refused the message: the queue is full or failed to store it", d), ""}
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
	ch, err := confirm.Open(conn, inFlight)
	if err != nil {
		return nil, err
	}
	s := &sender{ch: ch, batch: m}
	err = s.run(ctx)
	return s.sent, err
}

// sender publishes a batch on one channel, at most inFlight at a time.
type sender struct {
	batch
	ch   *confirm.Channel
	open []pending
	sent []string
}

type pending struct {
	*confirm.Pending
	id string
}

func (s *sender) run(ctx context.Context) error {
	for n := range s.count {
		if len(s.open) == inFlight {
			if err := s.waitForOne(ctx); err != nil {
				return err
			}
		}
		msg := confirm.Message{Exchange: s.to.exchange, Key: s.to.key, Mandatory: true, Publishing: s.msg}
		msg.MessageId = s.messageID(n)
		p, err := s.ch.Send(&msg)
		if err != nil {
			return err
		}
		s.open = append(s.open, pending{p, msg.MessageId})
	}
	for len(s.open) > 0 {
		if err := s.waitForOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitForOne waits for the oldest message.
func (s *sender) waitForOne(ctx context.Context) error {
	p := s.open[0]
	s.open = s.open[1:]
	if err := p.Wait(ctx); err != nil {
		return err
	}
	s.sent = append(s.sent, p.id)
	return nil
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
