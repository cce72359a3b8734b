package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// A Dialer opens another connection to the same broker, vhost and user.
type Dialer func(ctx context.Context) (*amqp.Connection, error)

// A Session is where questions are asked, one throw-away channel each: an answer
// that is an error closes its channel, and some close the whole connection
// (an unknown exchange type does on RabbitMQ 3.x). Then the session dials
// again, so that the rest is still answered.
//
// A Session is used by one goroutine at a time. When the context of a call ends
// while the server is silent, the connection is closed: nothing else interrupts
// a question.
type Session struct {
	conn  *amqp.Connection
	dial  Dialer
	owned bool // conn was dialled here
}

// Open dials with [Dial] and returns a session that owns its connection.
func Open(ctx context.Context, b spec.Broker, name string) (*Session, error) {
	dial := func(ctx context.Context) (*amqp.Connection, error) { return Dial(ctx, b, name) }
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{conn: conn, dial: dial, owned: true}, nil
}

// On returns a session on a connection that the caller keeps: exclusive queues
// declared there belong to it. dial may be nil; then a connection that an answer
// closes ends the attempt.
func On(conn *amqp.Connection, dial Dialer) *Session { return &Session{conn: conn, dial: dial} }

// Conn returns the connection in use; another one after the server closed it.
func (s *Session) Conn() *amqp.Connection { return s.conn }

// Server reads the server's version from the connection.
func (s *Session) Server() topology.Server { return Server(s.conn) }

// Close closes the connection, unless the caller of [On] owns it.
func (s *Session) Close() error {
	if !s.owned || s.conn.IsClosed() {
		return nil
	}
	return s.conn.Close()
}

// Server reads the server's version from the connection.
func Server(conn *amqp.Connection) topology.Server {
	version, _ := conn.Properties["version"].(string)
	return topology.Server{Version: version}
}

// A question uses a channel of its own and returns the server's answer.
type question func(ch *amqp.Channel) error

// ask returns an *amqp.Error when the server answered with one; any other error
// means that there was no answer, and ends the attempt.
func (s *Session) ask(ctx context.Context, q question) error {
	if s.conn.IsClosed() {
		if err := s.reopen(ctx); err != nil {
			return err
		}
	}
	return askOn(ctx, s.conn, q)
}

// aside asks on a connection of its own, for questions whose answer may close
// it or that publish. A connection that has published is blocked by an alarm,
// acknowledgements included, so the caller's is never used for it.
func (s *Session) aside(ctx context.Context, q question) error {
	if s.dial == nil {
		return s.ask(ctx, q)
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) }()
	return askOn(ctx, conn, q)
}

func (s *Session) reopen(ctx context.Context) error {
	if s.dial == nil {
		return errors.New("the broker closed the connection")
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	s.conn, s.owned = conn, true
	return nil
}

// closeTimeout bounds the goodbye to a server that may have stopped answering.
const closeTimeout = time.Second

func askOn(ctx context.Context, conn *amqp.Connection, q question) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
	})
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		return lost(ctx, err)
	}
	defer func() { _ = ch.Close() }() // closed already after a refusal
	err = q(ch)
	var answer *amqp.Error
	if err == nil || errors.As(err, &answer) && answer.Server && answer.Code != amqp.ConnectionForced {
		return err
	}
	return lost(ctx, err)
}

// lost says why there is no answer: the context, else the connection.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("connection lost: %v", err)
}
