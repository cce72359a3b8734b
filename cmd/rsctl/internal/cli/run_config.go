package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/tracing"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// wiring is a spec turned into what the runtime needs.
type wiring struct {
	spec   *spec.Spec
	names  []string
	queues []runtime.Queue
	// exclusive says of each queue whether it belongs to its connection.
	exclusive []bool
	// declared says of each queue whether a run declares it.
	declared []bool
	closers  []hooks.Closer
}

// assemble makes the hooks and asks each whether it could run, so that a typo in
// a command is found before the first message.
func assemble(ctx context.Context, s *spec.Spec, queues []*spec.Queue, log *slog.Logger) (*wiring, error) {
	w := &wiring{spec: s}
	problems := &startProblems{}
	for _, q := range queues {
		hook, err := newHook(s, q, log)
		if err == nil {
			w.adopt(q, hook)
			err = checkHook(ctx, q, hook, log)
		}
		if err != nil {
			problems.add(fmt.Sprintf("%s: handler of queue %q: %v", at(s.File, q.At("handler")), q.Name, err), "")
		}
	}
	if len(problems.lines) > 0 {
		w.close()
		return nil, startError(problems)
	}
	return w, nil
}

func (w *wiring) adopt(q *spec.Queue, hook hooks.Hook) {
	if c, ok := hook.(hooks.Closer); ok {
		w.closers = append(w.closers, c)
	}
	w.names = append(w.names, q.Name)
	w.exclusive = append(w.exclusive, q.Exclusive)
	w.declared = append(w.declared, w.spec.DeclareTopology && !q.External)
	w.queues = append(w.queues, runtime.Queue{
		Policy:           topology.Policy(q),
		Hook:             hook,
		Timeout:          q.Handler.Timeout,
		Prefetch:         q.Prefetch,
		Concurrency:      callsAtOnce(q, hook),
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
		RetryUnavailable: q.Handler.OnUnavailable == "retry",
		Reply:            q.Handler.Reply,
		ReplyTo:          q.Handler.ReplyTo,
	})
}

// callsAtOnce is the queue's concurrency, or less when the hook handles less:
// a delivery that waits for the hook would spend its timeout waiting.
func callsAtOnce(q *spec.Queue, h hooks.Hook) int {
	if l, ok := h.(hooks.Limiter); ok {
		return min(q.Concurrency, l.Limit())
	}
	return q.Concurrency
}

// hasDeadLetterRoute reports whether the spec gives a rejected message somewhere
// to go: a route of the queue's own, or the pair, which is one on a quorum queue.
func hasDeadLetterRoute(q *spec.Queue) bool {
	return q.DeadLetterExchange != nil || (q.Type == spec.Quorum && q.MaxAttempts > 0 && q.DeadLetter != "")
}

// trace puts the hooks' runs into the traces of their messages.
func (w *wiring) trace(t *tracing.Tracer) {
	for i := range w.queues {
		w.queues[i].Hook = t.Wrap(w.queues[i].Hook)
	}
}

// close ends what the hooks hold.
func (w *wiring) close() {
	var closing sync.WaitGroup
	for _, c := range w.closers {
		closing.Go(func() { _ = c.Close() }) // the process is about to end
	}
	closing.Wait()
}

// checkHook refuses a command that could not be started. An endpoint that does
// not answer yet is only warned about: services start in any order, and the
// runtime waits for it.
func checkHook(ctx context.Context, q *spec.Queue, h hooks.Hook, log *slog.Logger) error {
	c, ok := h.(hooks.Checker)
	if !ok {
		return nil
	}
	err := c.Check(ctx)
	if err != nil && q.Handler.Kind == spec.HTTP {
		log.Warn("the handler cannot be reached yet", "queue", q.Name, "error", err)
		return nil
	}
	return err
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

func (w *wiring) config(log *slog.Logger) runtime.Config {
	p := &preparer{spec: w.spec, names: w.names, log: log}
	for i, name := range w.names {
		switch {
		case w.exclusive[i]:
			w.queues[i].Declare = p.declareOwn(name)
		case w.declared[i]:
			w.queues[i].DeclareAgain = p.declareAgain(name)
		}
	}
	return runtime.Config{
		Dial: func(ctx context.Context, purpose string) (*amqp.Connection, error) {
			return broker.Dial(ctx, w.spec.Broker, purpose)
		},
		Permanent: permanent,
		Prepare:   p.prepare,
		HeldUp:    heldUp,
		Queues:    w.queues,
		Log:       log,
	}
}

// permanent holds what trying again does not mend: a refused login and a
// topology that is not as the spec needs it.
func permanent(err error) bool {
	var refusal *broker.Refusal
	var start *startProblems
	return errors.As(err, &refusal) || errors.As(err, &start)
}

// heldUp holds what concerns only queues that another connection has exclusively.
func heldUp(err error) bool {
	var locked *broker.LockedError
	return errors.As(err, &locked)
}

// at renders a place in the spec.
func at(file string, p spec.Pos) string {
	if p == (spec.Pos{}) {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Col)
}
