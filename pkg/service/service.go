// Package service runs a spec: it connects, declares or verifies what the queues
// need, consumes them, calls their handlers and settles every delivery as the spec
// says. "rsctl run" is flags around it.
//
// [spec.Parse] makes a spec of a file, [New] a [Service] of the spec, and
// [Service.Run] works until its context ends. A queue's handler stands in the spec (a
// program, a worker or an endpoint), or is a Go function in [Options].Handlers.
//
// The package changes nothing that belongs to the whole process: it takes no signals
// and sets no limits.
package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Options are what a service needs beside its spec. The zero value works.
type Options struct {
	// Log gets what an operator has to know; docs/operations.md lists its keys. nil:
	// slog.Default().
	Log *slog.Logger
	// Queues names the queues to consume; none: all that have a handler.
	Queues []string
	// Handlers are handlers in this process, by the name of their queue. The spec must
	// not give that queue another one.
	Handlers map[string]Handler
	// Wrap puts each hook into another one, for traces for example; nil: it does
	// nothing. What it returns for a [hooks.BatchHook] has to be one, too.
	Wrap func(hooks.Hook) hooks.Hook
	// Observer is told what happens, as package metrics is; nil costs nothing.
	Observer runtime.Observer
	// Bodies counts the message bodies in hand and bounds them; nil: a bound of the
	// spec's max_in_memory.
	Bodies *memory.Bodies
	// Drain ends Run, with nil, once every queue is empty and nothing is held.
	Drain bool
	// DrainTimeout ends a Drain that takes longer with [runtime.ErrNotDrained]; 0: it
	// may take for ever.
	DrainTimeout time.Duration
	// ShutdownTimeout is how long Run waits for running handlers and held copies once
	// it has to end; 0: [runtime.DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// LoginPatience ends Run with a [LoginError] when the broker refuses, for this
	// long, a login that has worked: a supervisor can then start the process with a new
	// password. 0: it is tried for ever.
	LoginPatience time.Duration
}

// Service is a spec that can be run, once. Its methods may be called from several
// goroutines.
type Service struct {
	spec    *spec.Spec
	opts    Options
	log     *slog.Logger
	workers []*worker

	mu      sync.Mutex
	checked bool // the handlers could run
	stopped bool // before Run
	drain   context.CancelCauseFunc
	kill    context.CancelCauseFunc

	done chan struct{} // closed when Run has returned err
	err  error
}

// errStopped is why a service ends for which Stop was called.
var errStopped = errors.New("stopped")

// errRanBefore is the second call of Run.
var errRanBefore = errors.New("a Service runs once: make another one with New")

// New returns a service of s, which [spec.Parse] has returned, or a [*StartError] with
// everything that s and o make impossible. It contacts nothing and starts nothing.
func New(s *spec.Spec, o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if s == nil {
		return nil, &StartError{[]Problem{{Message: "there is no spec; Parse returns none when it has found errors"}}}
	}
	own := withHandlers(s, o.Handlers)
	queues, problems := choose(own, o)
	if len(problems) > 0 {
		return nil, &StartError{problems}
	}
	if o.Bodies == nil {
		o.Bodies = memory.NewBodies(own.MaxInMemory, o.Log)
	}
	svc := &Service{spec: own, opts: o, log: o.Log, done: make(chan struct{})}
	for _, q := range queues {
		svc.workers = append(svc.workers, newWorker(own, q, o))
	}
	return svc, nil
}

// Queues returns the names of the queues that s consumes, in the order of the spec.
func (s *Service) Queues() []string {
	names := make([]string, 0, len(s.workers))
	for _, w := range s.workers {
		names = append(names, w.queue.Name)
	}
	return names
}

// Run consumes until ctx ends or [Service.Stop] is called, and then drains: it takes no
// new delivery, hands back what no handler has seen, and waits for running handlers and
// held copies, up to Options.ShutdownTimeout. It returns after the last goroutine and
// process that it started; what was not settled is delivered again.
//
// The error is nil after a drain, a [*StartError] when the topology or a handler does
// not allow a start, a [*broker.Refusal] when the broker refuses it, and one that wraps
// [runtime.ErrCutShort] when a drain did not come to its end. A broker that cannot be
// reached is tried for ever.
func (s *Service) Run(ctx context.Context) (err error) {
	intake, drain := context.WithCancelCause(ctx)
	defer drain(nil)
	work, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	defer kill(nil)
	if start, err := s.begin(drain, kill); !start {
		return err
	}
	defer func() {
		s.err = err
		close(s.done)
	}()
	defer s.closeHandlers()
	defer context.AfterFunc(work, s.closeHandlers)()
	if err := s.CheckHandlers(intake); err != nil {
		if intake.Err() == nil {
			return err
		}
		s.sayStopped(intake) // the stop has cut the look at the handlers
		return nil
	}
	s.log.Info("starting", "queues", s.Queues(), "broker", s.spec.Broker.String())
	err = runtime.Run(intake, work, s.config(drain))
	var login *LoginError
	switch {
	case errors.As(context.Cause(intake), &login):
		return login
	case err == nil:
		s.sayStopped(intake)
	}
	return err
}

// begin reports whether a run may start.
func (s *Service) begin(drain, kill context.CancelCauseFunc) (start bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.drain != nil:
		return false, errRanBefore
	case s.stopped:
		s.log.Info("stopped", "cause", errStopped.Error())
		return false, nil
	}
	s.drain, s.kill = drain, kill
	return true, nil
}

func (s *Service) sayStopped(intake context.Context) {
	why := "the queues are empty"
	if cause := context.Cause(intake); cause != nil {
		why = cause.Error()
	}
	s.log.Info("stopped", "cause", why)
}

// Stop makes [Service.Run] drain and return, waits for that, and returns its error. When
// ctx ends before, running handlers are stopped: a ctx that is done already stops at
// once. A Run that has not been called yet returns at once. A handler must not call
// Stop, which would wait for it.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	drain, kill := s.drain, s.kill
	s.stopped = true
	s.mu.Unlock()
	if drain == nil {
		s.closeHandlers()
		return nil
	}
	drain(errStopped)
	select {
	case <-s.done:
	case <-ctx.Done():
		kill(context.Cause(ctx))
		<-s.done
	}
	return s.err
}

// config is what the runtime needs; giveUp ends the run's intake.
func (s *Service) config(giveUp context.CancelCauseFunc) runtime.Config {
	p := &preparer{spec: s.spec, names: s.Queues(), log: s.log}
	cfg := runtime.Config{
		Dial:            newLogins(s.opts.LoginPatience, giveUp).watch(p.dial),
		Prepare:         p.prepare,
		HeldUp:          heldUp,
		Log:             s.log,
		Bodies:          s.opts.Bodies,
		Observer:        s.opts.Observer,
		Drain:           s.opts.Drain,
		DrainTimeout:    s.opts.DrainTimeout,
		ShutdownTimeout: s.opts.ShutdownTimeout,
	}
	for _, w := range s.workers {
		cfg.Queues = append(cfg.Queues, w.consumed(p))
	}
	return cfg
}
