package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

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

	mu      sync.Mutex
	free    []*lane
	ended   bool          // no chore may start any more
	stopped chan struct{} // non-nil while the broker blocks publishing; closed when it ends
}

// lane is a channel in confirm mode that carries one copy at a time.
type lane struct {
	ch      *amqp.Channel
	returns chan amqp.Return
	closed  chan *amqp.Error
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

// take returns a free lane or opens one.
func (l *link) take() (*lane, error) {
	l.mu.Lock()
	for len(l.free) > 0 {
		ln := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		if !ln.ch.IsClosed() {
			l.mu.Unlock()
			return ln, nil
		}
	}
	l.mu.Unlock()
	return l.open()
}

func (l *link) open() (*lane, error) {
	ch, err := l.conn.Channel()
	if err != nil {
		return nil, err
	}
	ln := &lane{
		ch:      ch,
		returns: ch.NotifyReturn(make(chan amqp.Return, 1)),
		closed:  ch.NotifyClose(make(chan *amqp.Error, 1)),
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return ln, nil
}

// give puts a lane back. One whose last copy is still unanswered is closed, since
// a late return or confirm would be taken for the next copy's.
func (l *link) give(ln *lane, reusable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended || ln.ch.IsClosed():
	case reusable:
		l.free = append(l.free, ln)
	default:
		l.chores.Go(func() { _ = ln.ch.Close() }) // may wait for the broker; ends with the connection
	}
}

// answer is what became of the copy that was just confirmed. A basic.return
// comes before its confirm, so it is already in the buffer.
func (ln *lane) answer(acked bool) (reusable bool, err error) {
	if !acked {
		return ln.refusal()
	}
	select {
	case ret, ok := <-ln.returns:
		if ok {
			return true, fmt.Errorf("%w: %d %s", errReturned, ret.ReplyCode, ret.ReplyText)
		}
	default:
	}
	return true, nil
}

// refusal tells a nack from a channel that ended: the library reports both as
// "not acked".
func (ln *lane) refusal() (reusable bool, err error) {
	if !ln.ch.IsClosed() {
		return true, errNacked
	}
	select {
	case why := <-ln.closed:
		if why != nil && why.Server && !isConnectionError(why) {
			return false, fmt.Errorf("%w: %w", errRefused, why)
		}
		return false, closeCause(errUnknown, why)
	case <-time.After(time.Second): // the library has marked the channel closed and is about to say why
		return false, errUnknown
	}
}

// isConnectionError reports whether the broker closed the whole connection with
// e: then it says nothing about this copy.
func isConnectionError(e *amqp.Error) bool {
	switch e.Code {
	case amqp.ConnectionForced, amqp.InvalidPath, amqp.FrameError, amqp.SyntaxError, amqp.CommandInvalid,
		amqp.ChannelError, amqp.UnexpectedFrame, amqp.ResourceError, amqp.NotAllowed, amqp.NotImplemented, amqp.InternalError:
		return true
	}
	return false
}
