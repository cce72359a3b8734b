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
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/internal/held"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

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

	unprepared    error         // of the last Prepare
	answerTimeout time.Duration // how long a queue may take to answer
}

// Run consumes until intake is done and then drains: it takes no new delivery,
// hands back what no hook has seen, and waits for running hooks and held copies
// up to the shutdown timeout. Ending work ends intake, too, stops running hooks and
// publishes held copies early. Run returns after the last goroutine it started.
//
// The error is nil after a drain, and [ErrCutShort] after one that did not come to
// its end. A Config that cannot be run is one error with a line for each problem,
// before anything is dialled.
func Run(intake, work context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
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
			c.timers.Rush()
		}
	})()

	life, end := context.WithCancel(context.WithoutCancel(work))
	defer end()
	var parts sync.WaitGroup
	parts.Go(func() { r.publish(life) })
	parts.Go(func() { r.replies.run(life) })
	for _, c := range r.consumers {
		parts.Go(func() { c.timers.Run(life) })
	}
	parts.Go(func() { r.limitDrain(intake, life, kill) })
	parts.Go(func() { r.limitQueues(intake, life, stopIntake) })
	finishing, follow := r.finishing(intake, work, life)
	parts.Go(follow)
	for _, c := range r.consumers {
		c.finishing = finishing
	}

	err := r.serve(lifetimes{intake, work}, stopIntake)
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
	cfg = cfg.withDefaults()
	r := &runner{cfg: cfg, log: cfg.Log, opened: make(chan struct{}), answerTimeout: answerWithin}
	r.pub, r.replies = newCopies(cfg, purposePublish), newReplies(cfg)
	all := shared{
		pub:     r.pub,
		replies: r.replies,
		dial:    cfg.Dial,
		room:    held.NewRoom(),
		bodies:  cfg.Bodies,
		short:   &r.short,
		obs:     cfg.Observer,
		log:     cfg.Log,
	}
	for _, q := range cfg.Queues {
		r.consumers = append(r.consumers, newConsumer(q, all))
	}
	sortOwned(r.consumers)
	return r
}

// finishTimers waits until no queue holds a copy, or work has ended and what is
// left has been published early.
func (r *runner) finishTimers(work context.Context) {
	var finishing sync.WaitGroup
	for _, c := range r.consumers {
		finishing.Go(func() { c.timers.Finish(work) })
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
		r.log.Debug("draining", logkey.Reason, context.Cause(intake))
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
