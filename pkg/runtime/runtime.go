// Package runtime consumes queues, calls hooks and settles every delivery as
// package settle decides.
//
// At least two connections are open at a time: one for each 500 queues that
// consumes, and one that publishes copies, because a broker with a memory alarm stops reading a connection that
// publishes, and acknowledgements on it would stop too. Replies have one more,
// from the first on, because a stranger chooses where they go. Each reconnects on its
// own. [Run] owns every goroutine and returns after the last one.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// The defaults of a Config.
const (
	DefaultShutdownTimeout = 25 * time.Second
	DefaultConfirmTimeout  = 30 * time.Second
)

// Config is what Run needs. Its queues must have unique names.
type Config struct {
	// Dial opens one connection; purpose is "consume", "publish", "reply" or "prepare". A
	// queue that does not answer gets connections of its own to consume it.
	Dial func(ctx context.Context, purpose string) (*amqp.Connection, error)
	// Permanent reports whether trying Dial or Prepare again is useless. Such an
	// error ends Run when it happens before the first consumer has started; later
	// ones are tried again, since an operator may be mending the broker.
	Permanent func(error) bool
	// Prepare runs after every dial of the consume connection, before the first
	// consumer: it declares or verifies what the queues need. nil does nothing.
	// When it fails after a reconnect, or takes longer than seconds, the queues are
	// consumed all the same, and it runs again beside them, on connections of its
	// own, until it succeeds. It has to return when its context ends, and may close
	// the connection then.
	Prepare func(ctx context.Context, conn *amqp.Connection) error
	// HeldUp reports whether an error of Prepare concerns queues that can only not
	// be had now, because another connection holds them exclusively: the others are
	// consumed from the start. nil: no error does.
	HeldUp func(error) bool

	Queues          []Queue
	ShutdownTimeout time.Duration // 0: DefaultShutdownTimeout
	ConfirmTimeout  time.Duration // 0: DefaultConfirmTimeout
	// Drain ends Run, with nil, once every queue is empty and nothing is held.
	// Retries that wait on the broker are not waited for, but counted in the log.
	Drain bool
	// DrainTimeout ends a Drain that takes longer with ErrNotDrained; 0: it may take
	// for ever.
	DrainTimeout time.Duration
	Log          *slog.Logger
	// Bodies bounds and counts the message bodies in hand; nil: the default bound.
	Bodies *memory.Bodies
	// Observer is told what happens; nil costs nothing.
	Observer Observer
}

// Queue is one queue to consume.
type Queue struct {
	Policy      settle.Policy
	Hook        hooks.Hook
	Timeout     time.Duration // of one hook call
	Prefetch    int           // 1..65535
	Concurrency int           // hook calls at a time, whatever happens to connections
	Rate        float64       // hook calls per second, at most; 0: no limit
	Breaker     Breaker
	Order       Order
	Batch       Batch    // needs a Hook that is a hooks.BatchHook
	Waiting     []string // queues on the broker where delayed retries wait
	Consumer    Consumer
	Publisher   Publisher
	// Arrivals are the ways by which copies of rsctl reach the queue; nil: the
	// default exchange alone. Only there a message's own word for where it first
	// came from is believed.
	Arrivals []settle.Arrival
	// Declare declares a queue that belongs to the connection that consumes it, an
	// exclusive one, before each subscription. nil: Prepare has done it. It may take
	// as long as the broker does; ctx ends with the connection.
	Declare func(ctx context.Context, conn *amqp.Connection) error
	// GoesUnused says that the broker deletes the queue when nobody consumes it: a
	// pause, however long, keeps a consumer.
	GoesUnused bool
	// DeclareAgain declares the queue, which was not there, on a connection of its
	// own. nil: somebody else has to.
	DeclareAgain func(ctx context.Context, conn *amqp.Connection) error
	// DeadLetterRoute says that a rejected message is known to have somewhere to
	// go: it decides how a message too large for any copy ends.
	DeadLetterRoute bool
	// RetryUnavailable settles a delivery whose hook could not be run as a
	// retry instead of pausing the queue.
	RetryUnavailable bool
	// Reply publishes the reply of a hook that acks to the delivery's reply_to,
	// before the ack.
	Reply bool
	// ReplyTo allows reply addresses beside direct reply-to and amq.gen-*: names of
	// queues, in which * stands for any characters.
	ReplyTo []string
}

// Consumer holds the arguments of basic.consume.
type Consumer struct {
	Tag       string // a suffix makes it unique per channel
	Exclusive bool
	// SingleActive says that the queue has a single active consumer.
	SingleActive bool
	Arguments    map[string]any
}

// Publisher overrides properties of the copies of a classic queue; nil leaves
// them as the original has them.
type Publisher struct {
	Persistent *bool
	Priority   *uint8
}

func (q Queue) reader() message.Reader {
	return message.Reader{Queue: q.Policy.Queue, Type: q.Policy.Type, Arrivals: q.Arrivals}
}

func (q Queue) checkBatch() error {
	if q.Batch.Size == 0 {
		return nil
	}
	if _, ok := q.Hook.(hooks.BatchHook); !ok {
		return fmt.Errorf("queue %q: its handler takes no batches", q.Policy.Queue)
	}
	return nil
}

// errShutdownTimeout is the cause of the work context when a drain takes too
// long.
var errShutdownTimeout = errors.New("shutdown timeout reached")

// errDrained is the cause of the intake context when Config.Drain is fulfilled.
var errDrained = errors.New("queues are empty")

// runner is one call of Run.
type runner struct {
	cfg       Config
	log       *slog.Logger
	pub       *copies
	replies   *replies
	consumers []*consumer
	opened    chan struct{} // closed once the broker has been reached

	short   shortfall
	looking atomic.Pointer[session] // on which a Drain looks at the queues; nil while there is none

	unprepared error         // of the last Prepare
	patience   time.Duration // how long a queue may take to answer
}

// stages are the two kinds of stop. The end of intake takes no new delivery and
// lets running hooks finish; the end of work stops the hooks as well.
type stages struct{ intake, work context.Context }

func (s stages) stopping() bool { return s.intake.Err() != nil }

// Run consumes until intake is done and then drains: it takes no new delivery,
// hands back what no hook has seen, and waits for running hooks and held copies
// up to the shutdown timeout. Ending work, whose child intake must be, stops
// running hooks and publishes held copies early. Run returns after the last
// goroutine it started; the error is nil after a drain, and ErrCutShort after one
// that did not come to its end.
func Run(intake, work context.Context, cfg Config) error {
	for _, q := range cfg.Queues {
		if err := q.checkBatch(); err != nil {
			return err
		}
	}
	return newRunner(cfg).run(intake, work)
}

func (r *runner) run(intake, work context.Context) error {
	work, kill := context.WithCancelCause(work)
	defer kill(nil)
	intake, stopIntake := context.WithCancelCause(intake)
	defer stopIntake(nil)
	defer context.AfterFunc(work, func() {
		stopIntake(context.Cause(work))
		for _, c := range r.consumers {
			c.timers.rushAll()
		}
	})()

	life, end := context.WithCancel(context.WithoutCancel(work))
	defer end()
	var parts sync.WaitGroup
	parts.Go(func() { r.publish(life) })
	parts.Go(func() { r.replies.run(life) })
	for _, c := range r.consumers {
		parts.Go(func() { c.timers.run(life) })
	}
	parts.Go(func() { r.limitDrain(intake, life, kill) })
	parts.Go(func() { r.limitQueues(intake, life, stopIntake) })
	finishing, follow := r.finishing(intake, work, life)
	parts.Go(follow)
	for _, c := range r.consumers {
		c.finishing = finishing
	}

	err := r.serve(stages{intake, work}, stopIntake)
	stopIntake(err)
	r.finishTimers(work)
	cut := context.Cause(work)
	end()
	parts.Wait()
	if err != nil {
		return err
	}
	return r.verdict(cut, context.Cause(intake))
}

func newRunner(cfg Config) *runner {
	if cfg.ShutdownTimeout <= 0 {
		cfg.ShutdownTimeout = DefaultShutdownTimeout
	}
	if cfg.ConfirmTimeout <= 0 {
		cfg.ConfirmTimeout = DefaultConfirmTimeout
	}
	if cfg.Permanent == nil {
		cfg.Permanent = func(error) bool { return false }
	}
	r := &runner{cfg: cfg, log: cfg.Log, opened: make(chan struct{}), patience: answerWithin}
	if cfg.Bodies == nil {
		cfg.Bodies = memory.NewBodies(memory.Default, cfg.Log)
	}
	r.pub, r.replies = newCopies(cfg, purposePublish), newReplies(cfg)
	room := make(chan struct{}, maxHeld)
	for _, q := range cfg.Queues {
		t := newTimers(r.pub, room, cfg.Log.With(keyQueue, q.Policy.Queue))
		c := newConsumer(q, r.pub, t, cfg.Log)
		c.observe(cfg.Observer)
		c.bodies, t.mem = cfg.Bodies, cfg.Bodies.Held()
		c.dial, c.replies = cfg.Dial, r.replies
		c.short = &r.short
		r.consumers = append(r.consumers, c)
	}
	sortOwned(r.consumers)
	return r
}

// finishTimers waits until no queue holds a copy, or work has ended and what is
// left has been published early.
func (r *runner) finishTimers(work context.Context) {
	var finishing sync.WaitGroup
	for _, c := range r.consumers {
		finishing.Go(func() { c.timers.finish(work) })
	}
	finishing.Wait()
}

// publish keeps the second connection open, once the first has shown that the
// broker takes us: a refused login is then reported once.
func (r *runner) publish(life context.Context) {
	select {
	case <-r.opened:
		r.pub.Run(life)
	case <-life.Done():
	}
}

// limitDrain ends work when a drain has taken as long as it may.
func (r *runner) limitDrain(intake, life context.Context, kill context.CancelCauseFunc) {
	select {
	case <-intake.Done():
		r.short.draining.Store(true)
		r.log.Debug("draining", keyReason, context.Cause(intake))
		tell(r.cfg.Observer, Draining{context.Cause(intake)})
	case <-life.Done():
		return
	}
	limit := time.NewTimer(r.cfg.ShutdownTimeout)
	defer limit.Stop()
	select {
	case <-limit.C:
		kill(errShutdownTimeout)
	case <-life.Done():
	}
}
