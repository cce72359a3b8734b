package runtime

import (
	"context"
	"log/slog"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is one publish connection with the channels opened on it.
type link struct {
	conn    *amqp.Connection
	log     *slog.Logger
	obs     Observer
	closed  chan *amqp.Error
	blocked chan amqp.Blocking
	chores  sync.WaitGroup
	opening sync.Mutex // held while a shared lane is opened

	mu      sync.Mutex
	lanes   []*lane       // that copies share
	ended   bool          // no chore may start any more
	stopped chan struct{} // non-nil while the broker blocks publishing; closed when it ends
}

func newLink(conn *amqp.Connection, log *slog.Logger, obs Observer) *link {
	l := &link{
		conn:    conn,
		log:     log,
		obs:     obs,
		closed:  conn.NotifyClose(make(chan *amqp.Error, 1)),
		blocked: conn.NotifyBlocked(make(chan amqp.Blocking, 8)),
	}
	l.chores.Go(l.watchBlocked)
	return l
}

// wait returns when the connection is lost or ctx is done.
func (l *link) wait(ctx context.Context) error {
	select {
	case err := <-l.closed:
		return closeCause(errSessionLost, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection and everything that waits on it.
func (l *link) close() {
	closeConn(l.conn)
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.chores.Wait()
}

// watchBlocked follows connection.blocked until the connection ends. The
// channel must always be read, or the client library stalls.
func (l *link) watchBlocked() {
	for b := range l.blocked {
		if b.Active {
			l.log.Warn("broker blocks publishing; copies wait, other settlements go on", keyReason, b.Reason)
			tell(l.obs, Blocked{b.Reason})
		} else {
			l.log.Info("broker takes publishings again")
			tell(l.obs, Unblocked{})
		}
		l.setBlocked(b.Active)
	}
	if l.isBlocked() {
		tell(l.obs, Unblocked{}) // a connection that is gone is not blocked
	}
	l.setBlocked(false)
}

func (l *link) setBlocked(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && l.stopped == nil:
		l.stopped = make(chan struct{})
	case !on && l.stopped != nil:
		close(l.stopped)
		l.stopped = nil
	}
}

func (l *link) isBlocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped != nil
}

// unblocked waits as long as the broker blocks publishing: the original stays
// unsettled meanwhile, so waiting costs nothing and loses nothing.
func (l *link) unblocked(ctx context.Context) error {
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if stopped == nil {
		return nil
	}
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
