package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	reconnectMin = 500 * time.Millisecond
	reconnectMax = 30 * time.Second
	closeTimeout = 5 * time.Second
)

// session is one consume connection. Deliveries belong to it: once it is lost,
// none of them can be settled any more.
type session struct {
	conn     *amqp.Connection
	ctx      context.Context // done when the connection is lost; the cause says why
	patience time.Duration   // how long an answer may take

	mu     sync.Mutex
	over   bool // no chore may start any more
	chores sync.WaitGroup
}

// serve opens one session after the other until intake is done, and returns
// after every handler has ended.
func (r *runner) serve(st stages, stopIntake context.CancelCauseFunc) error {
	defer r.waitHandlers()
	wait := newBackoff(reconnectMin, reconnectMax)
	served := false
	for {
		conn, err := r.open(st.intake, served)
		switch {
		case st.stopping():
			closeConn(conn)
			return nil
		case err != nil && !served && r.cfg.Permanent(err):
			return err
		case err == nil:
			if !served {
				served = true
				close(r.opened)
			}
			started := time.Now()
			tell(r.cfg.Observer, Connected{"consume"})
			err = r.session(st, conn, stopIntake)
			if st.stopping() {
				tell(r.cfg.Observer, Disconnected{Purpose: "consume"})
				return nil
			}
			if time.Since(started) > reconnectMax {
				wait.reset()
			}
		}
		tell(r.cfg.Observer, Disconnected{"consume", err})
		d := wait.next()
		r.log.Error("no connection to the broker; trying again", keyError, err, keyIn, d.Round(time.Millisecond))
		sleep(d, st.intake.Done())
	}
}

func (r *runner) waitHandlers() {
	for _, c := range r.consumers {
		c.handlers.Wait()
	}
}

// open dials and prepares. The connection is nil when there is an error. Once it
// has served, a queue that is missing or does not answer concerns itself only:
// the others are consumed, and session prepares again until all is well.
func (r *runner) open(ctx context.Context, served bool) (*amqp.Connection, error) {
	conn, err := r.cfg.Dial(ctx, "consume")
	if err != nil || r.cfg.Prepare == nil {
		return conn, err
	}
	limit := firstPrepare
	if served {
		limit = nextPrepare
	}
	r.unprepared = r.prepare(ctx, conn, limit)
	switch {
	case r.unprepared == nil || served && !conn.IsClosed():
		return conn, nil
	case !served || ctx.Err() != nil:
		closeConn(conn)
		return nil, r.unprepared
	}
	return r.cfg.Dial(ctx, "consume") // some answers, and no answer, close a connection
}

// A queue whose node is down may keep a question without an answer for ever.
const (
	firstPrepare = time.Minute
	nextPrepare  = 5 * time.Second
)

func (r *runner) prepare(ctx context.Context, conn *amqp.Connection, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errPrepareTimeout)
	defer cancel()
	err := r.cfg.Prepare(ctx, conn)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

var errPrepareTimeout = errors.New("the broker does not answer whether the topology is there; is a node down?")

// prepareAgain goes on where open has failed, on connections of its own: a
// question that is given up closes its connection, and hooks need theirs.
func (r *runner) prepareAgain(ctx context.Context, s *session) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	wait := newBackoff(reconnectMin, reconnectMax)
	for err := r.unprepared; err != nil && ctx.Err() == nil; {
		d := wait.next()
		r.log.Error("the topology is not as it has to be; consuming what there is and trying again", keyError, err, keyIn, d.Round(time.Millisecond))
		if !sleep(d, ctx.Done()) {
			return
		}
		var conn *amqp.Connection
		if conn, err = r.cfg.Dial(ctx, "prepare"); err == nil {
			err = r.prepare(ctx, conn, firstPrepare)
			closeConn(conn)
		}
	}
}

// session consumes on conn until intake is done or the connection is lost. When
// intake is done it keeps the connection until every handler has settled.
func (r *runner) session(st stages, conn *amqp.Connection, stopIntake context.CancelCauseFunc) error {
	s, end := watch(context.WithoutCancel(st.work), conn)
	s.patience = r.patience
	defer end()
	defer closeConn(conn)
	// A broker that no longer answers must not keep a stopped process alive.
	defer context.AfterFunc(st.work, func() {
		if sleep(forceCloseAfter, s.ctx.Done()) {
			closeConn(conn)
		}
	})()

	var consuming sync.WaitGroup
	for _, c := range r.consumers {
		consuming.Go(func() { c.consume(st, s) })
	}
	consuming.Go(func() { r.prepareAgain(st.intake, s) })
	if r.cfg.Drain {
		consuming.Go(func() { r.stopWhenEmpty(st.intake, s, stopIntake) })
	}
	consuming.Wait()
	if s.ctx.Err() == nil {
		r.log.Debug("waiting for running hooks")
		r.waitHandlers()
	}
	return context.Cause(s.ctx)
}

// forceCloseAfter is how long settlements may take once work has ended: hooks
// get their grace to end first, so it is longer than any sane kill_grace.
const forceCloseAfter = 15 * time.Second

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
			cancel(closeCause(errSessionLost, err))
		case <-ctx.Done():
		}
	})
	s := &session{conn: conn, ctx: ctx, patience: answerWithin}
	return s, func() {
		cancel(errSessionLost)
		closeConn(conn)
		watcher.Wait()
		s.finish()
	}
}

// closeCause adds the broker's words, when there are any, to err.
func closeCause(err error, why *amqp.Error) error {
	if why == nil {
		return err
	}
	return &lostError{err, why}
}

// lostError says that a channel or connection ended and what was said about it.
type lostError struct {
	what error
	why  *amqp.Error
}

func (e *lostError) Error() string   { return e.what.Error() + ": " + reasonText(e.why) }
func (e *lostError) Unwrap() []error { return []error{e.what, e.why} }

func closeConn(conn *amqp.Connection) {
	if conn != nil && !conn.IsClosed() {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout)) // nothing to do about a connection that will not say goodbye
	}
}
