package runtime

import (
	"context"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

const (
	reconnectMin = 500 * time.Millisecond
	reconnectMax = 30 * time.Second
)

// serve connects, splits the queues over as many connections as they need, and
// keeps each open until intake is done. It returns after every handler has ended.
func (r *runner) serve(st lifetimes, stopIntake context.CancelCauseFunc) error {
	defer waitHandlers(r.consumers)
	conn, err := r.connect(st)
	if conn == nil {
		return err
	}
	var serving sync.WaitGroup
	for i, consumers := range split(r.consumers, perConnection(conn)) {
		sh := &shard{consumers: consumers, open: r.dialConsume, background: func(lifetimes, *session) {}}
		if i == 0 {
			sh.conn, sh.open = conn, r.reopen
			sh.background = func(st lifetimes, s *session) { r.tend(st, s, stopIntake) }
		}
		serving.Go(func() { r.keep(st, sh) })
	}
	serving.Wait()
	return nil
}

// connect opens the first connection and prepares, again and again until the
// broker takes us, says no for good, or intake is done: then there is none.
func (r *runner) connect(st lifetimes) (*amqp.Connection, error) {
	wait := backoff.New(reconnectMin, reconnectMax)
	for {
		conn, err := r.open(st.intake, false)
		switch {
		case st.stopping():
			closing.Conn(conn)
			return nil, nil
		case err == nil:
			close(r.opened)
			return conn, nil
		case permanent(err):
			return nil, err
		}
		r.waitToConnect(st, wait, r.consumers, err)
	}
}

// keep opens one session of a shard after the other until intake is done.
func (r *runner) keep(st lifetimes, sh *shard) {
	wait := backoff.New(reconnectMin, reconnectMax)
	for {
		conn, err := sh.connection(st.intake)
		if st.stopping() {
			closing.Conn(conn)
			r.short.alone.Store(true)
			return
		}
		if err == nil {
			started := time.Now()
			tell(r.cfg.Observer, Connected{purposeConsume, queueNames(sh.consumers)})
			err = r.session(st, conn, sh)
			if st.stopping() {
				if err != nil {
					r.short.alone.Store(true)
				}
				tell(r.cfg.Observer, Disconnected{purposeConsume, queueNames(sh.consumers), nil})
				return
			}
			if time.Since(started) > reconnectMax {
				wait.Reset()
			}
		}
		r.waitToConnect(st, wait, sh.consumers, err)
	}
}

func (r *runner) waitToConnect(st lifetimes, wait *backoff.Backoff, consumers []*consumer, err error) {
	tell(r.cfg.Observer, Disconnected{purposeConsume, queueNames(consumers), err})
	d := wait.Next()
	r.log.Error("no connection to the broker; trying again", logkey.Error, err, logkey.RetryIn, d.Round(time.Millisecond))
	backoff.Sleep(d, st.intake.Done())
}

func waitHandlers(consumers []*consumer) {
	for _, c := range consumers {
		c.handlers.Wait()
	}
}

func (r *runner) dialConsume(ctx context.Context) (*amqp.Connection, error) {
	return r.cfg.Dial(ctx, purposeConsume)
}

func (r *runner) reopen(ctx context.Context) (*amqp.Connection, error) { return r.open(ctx, true) }

// tend looks after the whole run on the first connection.
func (r *runner) tend(st lifetimes, s *session, stopIntake context.CancelCauseFunc) {
	var tending sync.WaitGroup
	tending.Go(func() { r.prepareAgain(st.intake, s) })
	if r.cfg.Drain {
		tending.Go(func() { r.stopWhenEmpty(st.intake, s, stopIntake) })
	}
	tending.Wait()
}

// open dials and prepares. The connection is nil when there is an error. Once it
// has served, a queue that is missing or does not answer concerns itself only, and
// so does from the start one that is only held up: the others are consumed, and
// session prepares again until all is well.
func (r *runner) open(ctx context.Context, served bool) (*amqp.Connection, error) {
	conn, err := r.cfg.Dial(ctx, purposeConsume)
	if err != nil || r.cfg.Prepare == nil {
		return conn, err
	}
	limit := r.firstPrepare()
	if served {
		limit = nextPrepare
	}
	r.unprepared = r.prepare(ctx, conn, limit)
	if r.unprepared == nil {
		return conn, nil
	}
	goOn := served || r.cfg.HeldUp != nil && r.cfg.HeldUp(r.unprepared)
	switch {
	case goOn && !conn.IsClosed():
		return conn, nil
	case !goOn || ctx.Err() != nil:
		closing.Conn(conn)
		return nil, r.unprepared
	}
	return r.cfg.Dial(ctx, purposeConsume) // some answers, and no answer, close a connection
}

func (r *runner) firstPrepare() time.Duration {
	return leastPrepare + time.Duration(len(r.consumers))*prepareEach
}

func (r *runner) prepare(ctx context.Context, conn *amqp.Connection, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errPrepareTimeout)
	defer cancel()
	err := r.cfg.Prepare(ctx, conn)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// prepareAgain goes on where open has failed, on connections of its own: a
// question that is given up closes its connection, and hooks need theirs.
func (r *runner) prepareAgain(ctx context.Context, s *session) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	wait := backoff.New(reconnectMin, reconnectMax)
	for err := r.unprepared; err != nil && ctx.Err() == nil; {
		d := wait.Next()
		r.log.Error("the topology is not as it has to be; consuming what there is and trying again", logkey.Error, err, logkey.RetryIn, d.Round(time.Millisecond))
		if !backoff.Sleep(d, ctx.Done()) {
			return
		}
		var conn *amqp.Connection
		if conn, err = r.cfg.Dial(ctx, "prepare"); err == nil {
			err = r.prepare(ctx, conn, r.firstPrepare())
			closing.Conn(conn)
		}
	}
}

// session consumes the queues of a shard on conn until intake is done or the
// connection is lost. When intake is done it keeps the connection until every
// handler has settled.
func (r *runner) session(st lifetimes, conn *amqp.Connection, sh *shard) error {
	s, end := watch(context.WithoutCancel(st.work), conn)
	s.answerTimeout = r.answerTimeout
	defer end()
	defer closing.Conn(conn)
	// A broker that no longer answers must not keep a stopped process alive.
	defer context.AfterFunc(st.work, func() {
		if backoff.Sleep(forceCloseAfter, s.ctx.Done()) {
			closing.Conn(conn)
		}
	})()

	var consuming sync.WaitGroup
	for _, c := range sh.consumers {
		consuming.Go(func() { c.consume(st, s) })
	}
	consuming.Go(func() { sh.background(st, s) })
	consuming.Wait()
	if s.ctx.Err() == nil {
		r.log.Debug("waiting for running handlers")
		waitHandlers(sh.consumers)
	}
	return context.Cause(s.ctx)
}

// forceCloseAfter is how long settlements may take once work has ended: hooks
// get their grace to end first, so it is longer than any sane kill_grace.
const forceCloseAfter = 15 * time.Second
