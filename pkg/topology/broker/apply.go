package broker

import (
	"context"
	"fmt"
	"log/slog"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// Apply declares t in its order. Nothing is ever deleted or changed: what exists
// with other settings is a Conflict with have and want. Every object is tried
// whatever happened to the others, except bindings whose ends are not there;
// they are Skipped. The error is for what ends the whole attempt.
//
// An exclusive queue belongs to the session's connection; [Leave] says what
// becomes of those that another one has to declare. log gets one line for
// every object that is created; nil is silent.
func Apply(ctx context.Context, s *Session, t *topology.Topology, log *slog.Logger) (*Report, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &attempt{Session: s, srv: s.Server(), log: log, absent: map[string]bool{}}
	return a.run(ctx, t, steps{a.applyExchange, a.applyQueue, a.applyBinding})
}

// Leave reports the exclusive queues of t as not verified: they exist only while
// the connection that declares them is open, so that only run can declare them.
func Leave(t *topology.Topology) []Finding {
	var findings []Finding
	for _, q := range t.Queues {
		if !q.Exclusive {
			continue
		}
		f := queueFinding(q)
		f.State, f.Detail = NotVerified, "exclusive: declared by rsctl run, and there only while it is connected"
		findings = append(findings, f)
	}
	return findings
}

func (a *attempt) applyExchange(ctx context.Context, x topology.Exchange) (Finding, error) {
	if x.External {
		return a.lookExchange(ctx, x)
	}
	f := exchangeFinding(x)
	before, _, err := a.exchangePresence(ctx, x.Name)
	if err != nil {
		return f, err
	}
	ask := a.ask
	if !coreType(x.Type) {
		ask = a.aside
	}
	err = ask(ctx, func(ch *amqp.Channel) error { return declareExchangeForm(ch, x.Name, exchangeForm(x)) })
	switch answer := answerOf(err); {
	case err == nil:
		return declared(f, before), nil
	case answer == nil:
		return f, err
	case answer.Code == codePrecondition && before == there && !typeText.MatchString(answer.Reason):
		return a.conflictExchange(ctx, x, answer)
	default:
		if before != there {
			a.markAbsent(f)
		}
		return refuse(f, answer, purposeOf(x.Origin, x.Arguments)), nil
	}
}

// conflictExchange asks for everything that differs; the declare told one thing.
func (a *attempt) conflictExchange(ctx context.Context, x topology.Exchange, first *amqp.Error) (Finding, error) {
	ds, err := a.compareExchange(ctx, x)
	if err != nil && answerOf(err) == nil {
		return exchangeFinding(x), err
	}
	return conflict(exchangeFinding(x), ds, first), nil
}

func declared(f Finding, before presence) Finding {
	f.State = OK
	if before == absent {
		f.State = Created
	}
	return f
}

func (a *attempt) applyQueue(ctx context.Context, q topology.Queue) (Finding, error) {
	f := queueFinding(q)
	refused, yes := unfit(q, a.srv)
	if q.External && !yes {
		return a.lookQueue(ctx, q)
	}
	before, answer, err := a.queuePresence(ctx, q.Name)
	if err != nil {
		return f, err
	}
	if yes {
		if before != there {
			a.markAbsent(refused)
		}
		return refused, nil
	}
	if before == locked {
		a.markAbsent(f)
		return refuse(f, answer, ""), nil
	}
	if before == there && q.AcceptExisting {
		return a.lookDeadLetter(ctx, q)
	}
	return a.declareQueue(ctx, q, before)
}

func (a *attempt) declareQueue(ctx context.Context, q topology.Queue, before presence) (Finding, error) {
	f := queueFinding(q)
	err := a.ask(ctx, func(ch *amqp.Channel) error { return declareQueueForm(ch, q.Name, queueForm(q)) })
	answer := answerOf(err)
	switch {
	case err == nil:
		f = declared(f, before)
		if f.State == Created && q.Exclusive {
			f.Detail = "exclusive: lives as long as this connection"
		}
		return warnReturned(a.warnDeadLetter(f, q), q, a.srv), nil
	case answer == nil:
		return f, err
	}
	ineq, differs := parseInequivalent(answer, queueForm(q))
	switch {
	case differs && q.AcceptExisting: // somebody was faster, with other settings
		return a.lookDeadLetter(ctx, q)
	case differs:
		return a.conflictQueue(ctx, q, ineq)
	}
	if before != there {
		a.markAbsent(f)
	}
	return refuse(f, answer, purposeOf(q.Origin, q.Arguments)), nil
}

func (a *attempt) conflictQueue(ctx context.Context, q topology.Queue, first inequivalence) (Finding, error) {
	ds, err := a.compareQueue(ctx, q)
	if err != nil && answerOf(err) == nil {
		return queueFinding(q), err
	}
	if len(ds) == 0 {
		ds = []difference{first.difference}
	}
	return conflict(queueFinding(q), ds, nil), nil
}

func (a *attempt) applyBinding(ctx context.Context, b topology.Binding) (Finding, error) {
	f := bindingFinding(b)
	if end, lost := a.lostEnd(b); lost {
		f.State, f.Detail = Skipped, "needs "+end
		return f, nil
	}
	err := a.ask(ctx, func(ch *amqp.Channel) error {
		if b.ToExchange {
			return ch.ExchangeBind(b.Destination, b.RoutingKey, b.Source, false, table(b.Arguments))
		}
		return ch.QueueBind(b.Destination, b.RoutingKey, b.Source, false, table(b.Arguments))
	})
	switch answer := answerOf(err); {
	case err == nil:
		f.State = OK
		return f, nil
	case answer == nil:
		return f, err
	default:
		return refuse(f, answer, fmt.Sprintf("the binding %s", f.Name)), nil
	}
}
