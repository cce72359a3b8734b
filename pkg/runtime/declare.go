package runtime

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
)

// declareAgain declares the queue if err says that it is not there, and returns
// what keeps it from being consumed now.
func (c *consumer) declareAgain(st stages, err error) error {
	var ex *amqp.Error
	if c.q.DeclareAgain == nil || !errors.As(err, &ex) || ex.Code != amqp.NotFound || isDown(ex) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(st.intake, nextPrepare, errPrepareTimeout)
	defer cancel()
	conn, dialErr := c.dial(ctx, "prepare")
	if dialErr != nil {
		return err
	}
	defer closing.Conn(conn)
	if declareErr := c.q.DeclareAgain(ctx, conn); declareErr != nil {
		return fmt.Errorf("%w; declaring it again: %w", err, declareErr)
	}
	return errDeclaredAgain
}

var errDeclaredAgain = errors.New("the queue was not there and has been declared again; what it held is gone with it")
