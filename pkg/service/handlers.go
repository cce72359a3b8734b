package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/kinds"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// DefaultTimeout is how long one call of a handler in this process may take by
// default, as in a spec.
const DefaultTimeout = 30 * time.Second

// Handler is a handler in this process. Of its queue the spec says all but the handler;
// the spec's rules that need one, such as that about the server's consumer timeout, do
// not see it, and an exclusive queue cannot have it.
//
// A Hook that panics has failed its attempt: the panic is logged with its stack, and the
// process goes on.
type Handler struct {
	// Hook is called, from as many goroutines at a time as the queue's concurrency. It
	// may implement [hooks.BatchHook], for a queue with batch, and [hooks.Checker],
	// [hooks.Limiter] and [hooks.Closer], which have the meaning they have there.
	Hook hooks.Hook
	// Timeout is when the context of a call ends; 0: DefaultTimeout. A call that has
	// not returned by then still takes its place until it does.
	Timeout time.Duration
	// RetryUnavailable settles a delivery as a retry whose Hook returned an error that
	// wraps [hooks.ErrUnavailable]; else the queue pauses, and no attempt is spent.
	RetryUnavailable bool
	// Reply publishes Outcome.Reply of an ack to the reply_to of the message, when that
	// is direct reply-to, amq.gen-*, or matches one of ReplyTo, in which * stands for
	// any characters.
	Reply   bool
	ReplyTo []string
}

// asSpec is what the spec would say of h.
func (h Handler) asSpec(pos spec.Pos) *spec.Handler {
	out := &spec.Handler{Pos: pos, Timeout: h.Timeout, OnUnavailable: "pause", Reply: h.Reply, ReplyTo: h.ReplyTo}
	if out.Timeout == 0 {
		out.Timeout = DefaultTimeout
	}
	if h.RetryUnavailable {
		out.OnUnavailable = onUnavailableRetry
	}
	return out
}

// onUnavailableRetry is the value of on_unavailable that pauses no queue.
const onUnavailableRetry = "retry"

// withHandlers returns s with a handler for each queue that has one in this process, so
// that the topology is that of a queue which is consumed.
func withHandlers(s *spec.Spec, handlers map[string]Handler) *spec.Spec {
	own := *s
	own.Queues = slices.Clone(s.Queues)
	for i := range own.Queues {
		q := &own.Queues[i]
		if h, ok := handlers[q.Name]; ok && q.Handler == nil {
			q.Handler = h.asSpec(q.Pos)
		}
	}
	return &own
}

// choose returns the queues to consume, and everything that s and o make impossible.
func choose(s *spec.Spec, o Options) ([]*spec.Queue, []Problem) {
	var problems []Problem
	for _, p := range topology.Problems(s) {
		if p.Severity == spec.Error {
			problems = append(problems, Problem{p.File, p.Pos, p.Message, p.Hint})
		}
	}
	refuse := func(pos spec.Pos, hint, format string, args ...any) {
		problems = append(problems, Problem{s.File, pos, fmt.Sprintf(format, args...), hint})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Handlers)) {
		checkHandler(s.Queue(name), name, o.Handlers[name], refuse)
	}
	var queues []*spec.Queue
	for i := range s.Queues {
		if q := &s.Queues[i]; q.Handler != nil && (len(o.Queues) == 0 || slices.Contains(o.Queues, q.Name)) {
			queues = append(queues, q)
		}
	}
	for _, name := range o.Queues {
		switch q := s.Queue(name); {
		case q == nil:
			refuse(spec.Pos{}, "", "there is no queue %q", name)
		case q.Handler == nil:
			refuse(q.Pos, "give it one in the spec or in Options.Handlers", "queue %q has no handler", name)
		}
	}
	if len(queues) == 0 && len(problems) == 0 {
		refuse(spec.Pos{}, "give a queue a handler, in the spec or in Options.Handlers", "no queue has a handler, so there is nothing to run")
	}
	return queues, problems
}

// checkHandler refuses a handler in this process that its queue cannot have.
func checkHandler(q *spec.Queue, name string, h Handler, refuse func(pos spec.Pos, hint, format string, args ...any)) {
	if q == nil {
		refuse(spec.Pos{}, "", "Options.Handlers has a handler of queue %q, which the spec does not have", name)
		return
	}
	_, batches := h.Hook.(hooks.BatchHook)
	switch {
	case q.Handler.Kind != "":
		refuse(q.At("handler"), "leave one of them out", "queue %q has a handler in the spec and one in Options.Handlers", name)
	case h.Hook == nil:
		refuse(q.Pos, "", "the handler of queue %q in Options.Handlers has no Hook", name)
	case q.Batch != nil && !batches:
		refuse(q.At("batch"), "implement hooks.BatchHook, or remove batch", "queue %q has batch, and its Hook in Options.Handlers takes one message at a time", name)
	}
	if h.Timeout < 0 {
		refuse(q.Pos, "", "the timeout of the handler of queue %q is negative", name)
	}
}

// newHook makes the hook that serves q.
func newHook(s *spec.Spec, q *spec.Queue, o Options) (hooks.Hook, error) {
	if h, ok := o.Handlers[q.Name]; ok {
		return h.Hook, nil
	}
	return kinds.New(q.Handler, kinds.Options{Log: o.Log, Queue: q.Name, Concurrency: q.Concurrency, Dir: s.Dir})
}

// CheckHandlers asks every handler whether it could run, so that a typo in a command is
// found before the first message; the error is a [*StartError] with each that could not.
// An endpoint that does not answer yet is only logged: services start in any order, and
// the runtime waits for it. Run does the same first, unless it has been done.
func (s *Service) CheckHandlers(ctx context.Context) error {
	s.mu.Lock()
	checked := s.checked
	s.mu.Unlock()
	if checked {
		return nil
	}
	var problems []Problem
	for _, w := range s.workers {
		err := w.ready(ctx)
		switch {
		case err == nil:
		case w.built == nil && w.queue.Handler.Kind == spec.HTTP:
			s.log.Warn("the handler cannot be reached yet", "queue", w.queue.Name, "error", err)
		default:
			problems = append(problems, w.problem(err))
		}
	}
	if len(problems) > 0 {
		return &StartError{problems}
	}
	s.mu.Lock()
	s.checked = true
	s.mu.Unlock()
	return nil
}

// closeHandlers ends what the hooks hold.
func (s *Service) closeHandlers() {
	var closing sync.WaitGroup
	for _, w := range s.workers {
		if c, ok := w.hook.(hooks.Closer); ok {
			closing.Go(func() { _ = c.Close() }) // there is nothing left to do about it
		}
	}
	closing.Wait()
}
