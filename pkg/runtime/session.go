package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
)

// session is one consume connection. Deliveries belong to it: once it is lost,
// none of them can be settled any more.
type session struct {
	conn          *amqp.Connection
	ctx           context.Context // done when the connection is lost; the cause says why
	answerTimeout time.Duration   // how long an answer may take

	mu      sync.Mutex
	over    bool // nothing of running may start any more
	running sync.WaitGroup
}

var errSessionLost = errors.New("connection lost")

// watch returns the session of conn; its context ends with the connection, or
// when end is called.
func watch(parent context.Context, conn *amqp.Connection) (*session, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for range blocked { // must be read, or the client library stalls
		}
	})
	watcher.Go(func() {
		select {
		case err := <-closed:
			cancel(closing.Cause(errSessionLost, err))
		case <-ctx.Done():
		}
	})
	s := &session{conn: conn, ctx: ctx, answerTimeout: answerWithin}
	return s, func() {
		cancel(errSessionLost)
		closing.Conn(conn)
		watcher.Wait()
		s.finish()
	}
}
