package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
)

// How long the topology may take to be declared or checked, and how long to wait
// before it is tried again: a queue whose node is down may keep a question without
// an answer for ever.
const (
	leastPrepare = time.Minute
	prepareEach  = 100 * time.Millisecond // a queue, declared one after the other
	nextPrepare  = 5 * time.Second
)

var errPrepareTimeout = errors.New("the broker does not answer whether the topology is there; is a node down?")

// declareOwn declares a queue that belongs to its connection. A refusal concerns
// this queue only, and it is tried again with the next subscription.
func (r *subscriber) declareOwn(st lifetimes, s *session) error {
	if r.q.Declare == nil {
		return nil
	}
	_, err := ask(s, st.intake.Done(), func() (struct{}, error) {
		return struct{}{}, r.q.Declare(s.ctx, s.conn)
	})
	return err
}

// declareAgain declares the queue if err says that it is not there, and returns
// what keeps it from being consumed now.
func (r *subscriber) declareAgain(st lifetimes, err error) error {
	var ex *amqp.Error
	if r.q.DeclareAgain == nil || !errors.As(err, &ex) || ex.Code != amqp.NotFound || isDown(ex) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(st.intake, nextPrepare, errPrepareTimeout)
	defer cancel()
	conn, dialErr := r.dial(ctx, "prepare")
	if dialErr != nil {
		return err
	}
	defer closing.Conn(conn)
	if declareErr := r.q.DeclareAgain(ctx, conn); declareErr != nil {
		return fmt.Errorf("%w; declaring it again: %w", err, declareErr)
	}
	return errDeclaredAgain
}

var errDeclaredAgain = errors.New("the queue was not there and has been declared again; what it held is gone with it")
