package service

import (
	"context"
	"fmt"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// worker is one queue of a service, with its hook.
type worker struct {
	spec  *spec.Spec
	queue *spec.Queue
	hook  hooks.Hook
	built error // why there is no hook
	wrap  func(hooks.Hook) hooks.Hook
}

func newWorker(s *spec.Spec, q *spec.Queue, o Options) *worker {
	w := &worker{spec: s, queue: q, wrap: o.Wrap}
	w.hook, w.built = newHook(s, q, o)
	if w.wrap == nil {
		w.wrap = func(h hooks.Hook) hooks.Hook { return h }
	}
	return w
}

// ready returns why the handler could not run.
func (w *worker) ready(ctx context.Context) error {
	if w.built != nil {
		return w.built
	}
	if c, ok := w.hook.(hooks.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

func (w *worker) problem(err error) Problem {
	return Problem{
		File:    w.spec.File,
		Pos:     w.queue.At("handler"),
		Message: fmt.Sprintf("handler of queue %q: %v", w.queue.Name, err),
	}
}

// consumed is the queue as the runtime consumes it.
func (w *worker) consumed(p *preparer) runtime.Queue {
	q := w.queue
	out := runtime.Queue{
		Policy:           topology.Policy(q),
		Hook:             w.wrap(w.hook),
		Timeout:          q.Handler.Timeout,
		Prefetch:         q.Prefetch,
		Concurrency:      callsAtOnce(q, w.hook),
		Rate:             q.Rate,
		Breaker:          breakerOf(q),
		Order:            orderOf(q),
		Batch:            batchOf(q),
		Waiting:          topology.WaitingQueues(q),
		Consumer:         consumerOf(q),
		Publisher:        publisherOf(q),
		Arrivals:         topology.Arrivals(w.spec, q),
		GoesUnused:       q.GoesUnused(),
		DeadLetterRoute:  hasDeadLetterRoute(q),
		RetryUnavailable: q.Handler.OnUnavailable == onUnavailableRetry,
		Reply:            q.Handler.Reply,
		ReplyTo:          q.Handler.ReplyTo,
	}
	switch {
	case q.Exclusive:
		out.Declare = p.declareOwn(q.Name)
	case w.spec.DeclareTopology && !q.External:
		out.DeclareAgain = p.declareAgain(q.Name)
	}
	return out
}

// callsAtOnce is the queue's concurrency, or less when the hook handles less: a
// delivery that waits for the hook would spend its timeout waiting.
func callsAtOnce(q *spec.Queue, h hooks.Hook) int {
	if l, ok := h.(hooks.Limiter); ok {
		return min(q.Concurrency, l.Limit())
	}
	return q.Concurrency
}

// hasDeadLetterRoute reports whether the spec gives a rejected message somewhere to go:
// a route of the queue's own, or the pair, which is one on a quorum queue.
func hasDeadLetterRoute(q *spec.Queue) bool {
	return q.DeadLetterExchange != nil || (q.Type == spec.Quorum && q.MaxAttempts > 0 && q.DeadLetter != "")
}

func breakerOf(q *spec.Queue) runtime.Breaker {
	if q.Breaker == nil {
		return runtime.Breaker{}
	}
	return runtime.Breaker{Failures: q.Breaker.Failures, Cooldown: q.Breaker.Cooldown}
}

func orderOf(q *spec.Queue) runtime.Order {
	if q.OrderedBy == nil {
		return runtime.Order{}
	}
	return runtime.Order{By: runtime.OrderKey(q.OrderedBy.By), Header: q.OrderedBy.Header}
}

func batchOf(q *spec.Queue) runtime.Batch {
	if q.Batch == nil {
		return runtime.Batch{}
	}
	return runtime.Batch{Size: q.Batch.Size, Wait: q.Batch.Wait}
}

func consumerOf(q *spec.Queue) runtime.Consumer {
	c := runtime.Consumer{Tag: q.Consumer.Tag, Exclusive: q.Consumer.Exclusive, SingleActive: q.Consumer.SingleActive}
	if q.Consumer.HasPriority {
		c.Arguments = map[string]any{"x-priority": int64(q.Consumer.Priority)}
	}
	return c
}

func publisherOf(q *spec.Queue) runtime.Publisher {
	if q.RetryPublisher == nil {
		return runtime.Publisher{}
	}
	return runtime.Publisher{Persistent: q.RetryPublisher.Persistent, Priority: q.RetryPublisher.Priority}
}
