package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/ledger"
)

// succeeds is the body of a message that the handler acks.
var succeeds = []byte(ledger.Plan{Outcome: ledger.Ack}.String())

// send publishes one message to every queue that is not innocent.
func (s *scenario) send(p amqp.Publishing) error {
	p.DeliveryMode = amqp.Persistent
	return s.withChannel(func(ch lent) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		for _, q := range s.fault.queues {
			if q.innocent {
				continue
			}
			confirm, err := ch.PublishWithDeferredConfirm("", q.name, true, false, p)
			if err != nil {
				return err
			}
			if !confirm.Wait() {
				return fmt.Errorf("%s did not take a message of %d bytes", q.name, len(p.Body))
			}
		}
		return nil
	})
}

// undecodable publishes what RabbitMQ takes and the client library refuses to
// read: headers nested too deep, too many of them, and so many bytes of them that
// the server's own no longer fit into a frame.
func undecodable(_ context.Context, s *scenario, _ plan) error {
	deep := amqp.Table{"end": true}
	for range 40 {
		deep = amqp.Table{"next": deep}
	}
	wide := amqp.Table{}
	for i := range 8193 {
		wide[fmt.Sprintf("h%d", i)] = nil
	}
	large := amqp.Table{"pad": strings.Repeat("x", 130_850)}
	for i, headers := range []amqp.Table{deep, wide, large} {
		if err := s.send(amqp.Publishing{MessageId: fmt.Sprintf("hostile/%d", i), Headers: headers, Body: succeeds}); err != nil {
			return err
		}
	}
	return nil
}

// killer publishes messages whose handler kills rsctl, until RabbitMQ has given
// each of them up.
func killer(ctx context.Context, s *scenario, _ plan) error {
	deaths := make(chan chan struct{})
	s.hook.Stall(func(id string, _ int) {
		if !strings.HasPrefix(id, "killer/") {
			return
		}
		dead := make(chan struct{})
		select {
		case deaths <- dead:
			<-dead
		case <-ctx.Done():
		}
	})
	defer s.hook.Stall(nil)
	id := fmt.Sprintf("killer/%d", s.rng.Uint32())
	if err := s.send(amqp.Publishing{MessageId: id, Body: succeeds}); err != nil {
		return err
	}
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case dead := <-deaths:
			s.processes[0].kill()
			close(dead)
			s.ended++
			if err := s.replace(0); err != nil {
				return err
			}
		case <-look.C:
			if err := s.takeDead(); err != nil {
				return err
			}
			if s.hasTaken(id) == len(s.fault.queues)-len(bystanders) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: messages that kill are not given up\n%s", errStalled, s.processes[0].tail())
}

// hasTaken counts the dead letters with an id.
func (s *scenario) hasTaken(id string) (n int) {
	for _, have := range s.taken {
		if have == id {
			n++
		}
	}
	return n
}

// forgeReplies asks for answers at addresses that nobody has, some of which end
// the connection that answers on RabbitMQ 3.10 and 4.0.
func forgeReplies(_ context.Context, s *scenario, _ plan) error {
	real, err := s.replyToken()
	if err != nil {
		return err
	}
	middle := len(real) / 2
	for _, address := range []string{
		real[:len(real)-9],
		real[:middle] + "!!" + real[middle:],
		real[:middle] + "AAAA" + real[middle+4:],
		replyTo + ".forged",
		replyTo + ".",
		"requests.dead",
	} {
		if err := s.send(amqp.Publishing{MessageId: "hostile/reply", ReplyTo: address, CorrelationId: "1", Body: succeeds}); err != nil {
			return err
		}
	}
	return nil
}

const replyTo = "amq.rabbitmq.reply-to"

// replyToken is the address of a direct reply, as the server makes it.
func (s *scenario) replyToken() (token string, err error) {
	err = s.withChannel(func(ch lent) error {
		if _, err := ch.Consume(replyTo, "", true, false, false, false, nil); err != nil {
			return err
		}
		q, err := ch.QueueDeclare("", false, false, true, false, nil)
		if err != nil {
			return err
		}
		if err := ch.Publish("", q.Name, true, false, amqp.Publishing{ReplyTo: replyTo}); err != nil {
			return err
		}
		return until(context.Background(), "the server to write a reply address", func() bool {
			d, ok, err := ch.Get(q.Name, true)
			token = d.ReplyTo
			return ok && err == nil
		})
	})
	return token, err
}

// floodBodies publishes bodies near the largest that every series takes.
func floodBodies(_ context.Context, s *scenario, _ plan) error {
	body := append(bytes.Clone(succeeds), bytes.Repeat([]byte{' '}, 12<<20)...)
	for range 4 {
		if err := s.send(amqp.Publishing{MessageId: "hostile/large", Body: body}); err != nil {
			return err
		}
	}
	return nil
}

// loseLogReader closes the pipe that rsctl logs to, and wants the process to do
// its work and to drain all the same. Before RabbitMQ 4.3 a stop costs some
// messages of a quorum queue an attempt, so those there must have one to spare.
func loseLogReader(ctx context.Context, s *scenario, _ plan) error {
	p := s.processes[0]
	p.deaf.Store(true)
	if err := s.progress(ctx, 200); err != nil {
		return err
	}
	select {
	case <-p.done:
		return fmt.Errorf("rsctl ended with its log: %v", p.cmd.ProcessState)
	default:
	}
	if err := s.replace(0); err != nil {
		return err
	}
	return p.stop()
}

// stickLogReader stops reading the pipe that rsctl logs to, which takes 64 KiB.
func stickLogReader(ctx context.Context, s *scenario, _ plan) error {
	p := s.processes[0]
	p.reader.Lock()
	err := s.progressFor(ctx, outage)
	p.reader.Unlock()
	return err
}

// progressFor wants runs of hooks to go on for a while.
func (s *scenario) progressFor(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := s.progress(ctx, 50); err != nil {
			return err
		}
	}
	return nil
}
