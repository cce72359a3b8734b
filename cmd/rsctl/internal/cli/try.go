package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/tracing"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

type tryFlags struct {
	messageFlags
	attempt int
}

func newTry(a *app) *cobra.Command {
	var f tryFlags
	cmd := &cobra.Command{
		Use:   "try QUEUE",
		Short: "Run a queue's handler once on a message from the command line",
		Long: `Run the handler of QUEUE once, on a message from the command line, and say what
it answered and what "rsctl run" would make of that. No broker is contacted and
nothing is sent.

The handler gets the message as from a first delivery through the default
exchange; --attempt 3 makes it the third one. What it prints is shown as it
comes. The body, headers and properties are given as to "rsctl publish".

Exit code 0 when the handler ran, whatever it answered; 1 when it could not be
run (command not found, connection refused).`,
		Example: `  rsctl try orders --body '{"sku":"A-1"}'
  rsctl try orders --body-file order.json --header tenant=a --attempt 5
  rsctl try orders --output json < order.json`,
		Annotations:       map[string]string{formats: "text json"},
		Args:              between(1, 1, "a queue"),
		ValidArgsFunction: a.firstQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resolve(cmd)
			return try(cmd.Context(), a, f, args)
		},
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringVar(&f.id, "id", "", "message `ID` (default: random)")
	fl.IntVar(&f.attempt, "attempt", 1, "`NUMBER` of the attempt, from 1")
	return cmd
}

func try(ctx context.Context, a *app, f tryFlags, args []string) error {
	if f.attempt < 1 {
		return usagef("", "--attempt must be 1 or more, got %d", f.attempt)
	}
	msg, err := a.message(f.messageFlags)
	if err != nil {
		return err
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	queues, err := oneOrAll(s, args)
	if err != nil {
		return err
	}
	q := queues[0]
	if q.Handler == nil {
		return &negative{fmt.Sprintf("%s: queue %q has no handler to try", at(s.File, q.Pos), q.Name), ""}
	}
	msg.MessageId = cmp.Or(f.id, rand.Text())
	ctx, stop := interruptible(ctx)
	defer stop()
	t := trial{queue: q, policy: topology.Policy(q), facts: factsOf(q, f.attempt)}
	if t.policy.Oversized(len(msg.Body)) {
		return t.oversized(len(msg.Body))
	}
	return a.printTrial(t, a.runTrial(ctx, s, t, msg))
}

// trial is one call of a hook without a broker.
type trial struct {
	queue  *spec.Queue
	policy settle.Policy
	facts  settle.Facts
}

// oversized says that the handler does not get a body of so many bytes.
func (t trial) oversized(size int) error {
	then := settle.Consequence(t.facts, settle.DecideOversized(t.policy), t.policy)
	return &negative{fmt.Sprintf("the handler of queue %q would not be run: the body has %s, and max_body is %s; the message %s",
		t.queue.Name, plural(size, "byte"), spec.FormatSize(t.queue.MaxBody), then), ""}
}

// factsOf is what would be known about attempt n of a message that every attempt
// before has asked to try again: a capped classic queue has copied it, any other
// has it returned. Of a backoff's jitter there is none.
func factsOf(q *spec.Queue, n int) settle.Facts {
	f := settle.Facts{Attempt: n}
	if q.Type == spec.Classic && q.MaxAttempts > 0 {
		f.Counted = n - 1
	} else {
		f.Redelivered = n > 1
	}
	return f
}

// message is what the hook is told.
func (t trial) message(p amqp.Publishing) hooks.Message {
	d := &amqp.Delivery{
		Headers: p.Headers, ContentType: p.ContentType, ContentEncoding: p.ContentEncoding,
		DeliveryMode: p.DeliveryMode, Priority: p.Priority, CorrelationId: p.CorrelationId, ReplyTo: p.ReplyTo,
		Expiration: p.Expiration, MessageId: p.MessageId, Timestamp: p.Timestamp, Type: p.Type,
		UserId: p.UserId, AppId: p.AppId, Body: p.Body, Redelivered: t.facts.Redelivered,
	}
	r := message.Reading{Attempt: t.facts.Attempt, Counted: t.facts.Counted, RoutingKey: t.queue.Name}
	return message.ForHook(t.queue.Name, t.queue.MaxAttempts, r, d)
}

// result is what a trial has shown; err means that the hook could not be run.
type result struct {
	output  []outputLine
	outcome hooks.Outcome
	err     error
}

func (a *app) runTrial(ctx context.Context, s *spec.Spec, t trial, msg amqp.Publishing) result {
	out := a.newTryOutput()
	hook, err := newHook(s, t.queue, out.logger())
	if err != nil {
		return result{err: err}
	}
	outcome, err := callOnce(ctx, t.queue, new(tracing.Tracer).Wrap(hook), t.message(msg))
	if c, ok := hook.(hooks.Closer); ok {
		_ = c.Close() // after it, no more output comes; how it ended changes no answer
	}
	return result{out.all(), outcome, err}
}

// callOnce calls the hook as run would, within the handler's timeout.
func callOnce(ctx context.Context, q *spec.Queue, hook hooks.Hook, m hooks.Message) (hooks.Outcome, error) {
	call, cancel := context.WithTimeout(ctx, q.Handler.Timeout)
	defer cancel()
	outcome, err := handleOnce(call, q, hook, m)
	if ctx.Err() != nil {
		return outcome, &failure{err: context.Cause(ctx)}
	}
	return outcome, err
}

func handleOnce(ctx context.Context, q *spec.Queue, hook hooks.Hook, m hooks.Message) (hooks.Outcome, error) {
	if q.Batch == nil {
		return hook.Handle(ctx, m)
	}
	b, ok := hook.(hooks.BatchHook)
	if !ok {
		return hooks.Outcome{}, errors.New("this kind of handler takes no batches")
	}
	outcomes, err := b.HandleBatch(ctx, []hooks.Message{m})
	if err != nil {
		return hooks.Outcome{}, err
	}
	return hooks.Spread(outcomes, 1)[0], nil
}
