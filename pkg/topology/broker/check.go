package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// Check looks whether t is there, as wanted, and changes nothing. mgmt may be
// nil; then bindings and policies are NotVerified.
//
// Types and arguments are compared by the server itself, which needs configure
// permission on the object; without it they are read through mgmt, else
// NotVerified.
func Check(ctx context.Context, s *Session, mgmt *Management, t *topology.Topology) (*Report, error) {
	a := &attempt{Session: s, srv: s.Server(), absent: map[string]bool{}}
	view, unseen := mgmt.view(ctx)
	if unseen != nil {
		a.report.Findings = append(a.report.Findings, *unseen)
	}
	c := &checker{attempt: a, view: view}
	report, err := a.run(ctx, t, steps{exchange: c.exchange, queue: c.queue})
	if err != nil {
		return report, err
	}
	a.report.Findings = append(a.report.Findings, c.bindings(t.Bindings)...)
	a.report.Findings = append(a.report.Findings, c.timeouts(t.Queues)...)
	if err := c.copies(ctx, t); err != nil {
		return &a.report, err
	}
	err = a.checkDefaultExchange(ctx, t.DefaultCopies)
	return &a.report, err
}

// copies reports the copies that do not arrive. What cannot be seen of their way
// has findings of its own: bindings, arguments.
func (c *checker) copies(ctx context.Context, t *topology.Topology) error {
	if c.view.complete() {
		c.report.Findings = append(c.report.Findings, onlyWrong(doubts(c.view.world(), t.Trips))...)
		return nil
	}
	proof, err := Prove(ctx, c.Session, nil, t, nil)
	c.report.Findings = append(c.report.Findings, onlyWrong(proof.Findings)...)
	return err
}

// Verify is what run does before consuming when it may not declare: everything
// must exist, and a work queue must be of its type, because the type decides
// who counts attempts. It changes nothing and does not compare other settings.
func Verify(ctx context.Context, s *Session, t *topology.Topology) (*Report, error) {
	a := &attempt{Session: s, srv: s.Server(), absent: map[string]bool{}}
	return a.run(ctx, t, steps{exchange: a.verifyExchange, queue: a.verifyQueue})
}

func (a *attempt) verifyExchange(ctx context.Context, x topology.Exchange) (Finding, error) {
	f := exchangeFinding(x)
	here, answer, err := a.exchangePresence(ctx, x.Name)
	switch {
	case err != nil:
		return f, err
	case here == absent:
		return a.absentExchange(ctx, x)
	case here == unseen:
		return notSeen(f, answer, "the exchange is"), nil
	}
	f.State = OK
	return f, nil
}

func (a *attempt) verifyQueue(ctx context.Context, q topology.Queue) (Finding, error) {
	if refused, yes := unfit(q, a.srv); yes {
		return refused, nil
	}
	f, here, err := a.seeQueue(ctx, q)
	if err != nil || here != there || q.Origin.Role != topology.RoleWork {
		return f, err
	}
	ds, err := a.compareQueue(ctx, q)
	if err != nil {
		return a.unlike(f, err)
	}
	if len(ds) > 0 && ds[0].key == keyType {
		return conflict(f, ds, nil), nil
	}
	return warnNative(trueLimit(f, q, ds, a.srv), ds), nil
}

// seeQueue is OK when the queue is there, and otherwise the finding to report.
func (a *attempt) seeQueue(ctx context.Context, q topology.Queue) (Finding, presence, error) {
	f := queueFinding(q)
	here, answer, err := a.queuePresence(ctx, q.Name)
	if err != nil {
		return f, here, err
	}
	switch here {
	case there:
		f.State = OK
	case locked:
		f = refuse(f, answer, "")
	case unseen:
		f = notSeen(f, answer, "the queue is")
	case absent:
		a.markAbsent(f)
		f = gone(f)
		if q.Exclusive {
			f.State, f.Detail = NotVerified, "exclusive: exists only while its consumer is connected"
		}
	}
	return f, here, nil
}

// unlike is the finding when an existing object could not be compared: it may
// have vanished meanwhile.
func (a *attempt) unlike(f Finding, err error) (Finding, error) {
	answer := answerOf(err)
	switch {
	case answer == nil:
		return f, err
	case answer.Code == codeAccessRefused:
		return notSeen(f, answer, "type and arguments are"), nil
	case strings.Contains(answer.Reason, queuePoison), strings.Contains(answer.Reason, exchangePoison):
		return gone(f), nil
	}
	return refuse(f, answer, ""), nil
}

// lookQueue checks an existing queue against q. Of an external queue only what
// the spec relies on counts: its type, the arguments that q names, and that a
// waiting queue has somewhere to send expired copies.
func (a *attempt) lookQueue(ctx context.Context, q topology.Queue) (Finding, error) {
	f, here, err := a.seeQueue(ctx, q)
	if err != nil || here != there {
		return f, err
	}
	ds, err := a.compareQueue(ctx, q)
	if err != nil {
		return a.unlike(f, err)
	}
	if q.External {
		if f = trueLimit(warnWaiting(f, q, ds), q, ds, a.srv); f.failed() {
			return f, nil
		}
		ds = slices.DeleteFunc(ds, func(d difference) bool { _, named := q.Arguments[d.key]; return !named })
	}
	if len(ds) > 0 {
		return conflict(f, ds, nil), nil
	}
	return warnReturned(a.warnDeadLetter(f, q), q, a.srv), nil
}

// warnWaiting warns about an external waiting queue that sends nothing back. The
// comparison names every argument that such a queue has and q does not.
func warnWaiting(f Finding, q topology.Queue, ds []difference) Finding {
	_, named := q.Arguments[keyDeadLetter]
	routed := slices.ContainsFunc(ds, func(d difference) bool { return d.key == keyDeadLetter })
	if len(q.WaitsFor) == 0 || named || routed {
		return f
	}
	return warn(f, []string{fmt.Sprintf("it has no %s: unless a policy sets one, copies of %s that expire here are dropped", keyDeadLetter, quoteAll(q.WaitsFor))})
}

// lookExchange checks an existing exchange against x; of an external one only
// its type, where the spec gives it, and the arguments that x names.
func (a *attempt) lookExchange(ctx context.Context, x topology.Exchange) (Finding, error) {
	f := exchangeFinding(x)
	here, answer, err := a.exchangePresence(ctx, x.Name)
	switch {
	case err != nil:
		return f, err
	case here == absent:
		a.markAbsent(f)
		return a.absentExchange(ctx, x)
	case here == unseen:
		return notSeen(f, answer, "the exchange is"), nil
	}
	f.State = OK
	if x.Type == "" {
		return f, nil
	}
	ds, err := a.compareExchange(ctx, x)
	if err != nil {
		return a.unlike(f, err)
	}
	if x.External {
		ds = slices.DeleteFunc(ds, func(d difference) bool {
			_, named := x.Arguments[d.key]
			return !named && d.key != keyExchangeType
		})
	}
	if len(ds) > 0 {
		return conflict(f, ds, nil), nil
	}
	return f, nil
}

// absentExchange also tells when the exchange could not be created at all,
// because its type is not available. The probe is refused either way.
func (a *attempt) absentExchange(ctx context.Context, x topology.Exchange) (Finding, error) {
	f := exchangeFinding(x)
	if coreType(x.Type) {
		return gone(f), nil
	}
	_, err := a.compareExchange(ctx, x)
	answer := answerOf(err)
	switch {
	case answer != nil && typeText.MatchString(answer.Reason):
		return refuse(f, answer, ""), nil
	case err != nil && answer == nil:
		return f, err
	}
	return gone(f), nil
}

// publishTimeout bounds the one publication of Check: an alarm blocks it.
const publishTimeout = 5 * time.Second

// checkDefaultExchange finds out whether copies may be published to the default
// exchange. The empty key names no queue, so that the server drops the probe.
func (a *attempt) checkDefaultExchange(ctx context.Context, queues []string) error {
	if len(queues) == 0 {
		return nil
	}
	probe, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := a.aside(probe, func(ch *amqp.Channel) error {
		if err := ch.PublishWithContext(probe, "", "", false, false, amqp.Publishing{}); err != nil {
			return err
		}
		return ch.Confirm(false) // any answer comes after that to the publication
	})
	f := Finding{Kind: kindPermission, Name: "amq.default", State: OK, Origin: topology.Origin{Queues: queues}}
	switch answer := answerOf(err); {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case answer != nil:
		f = refuse(f, answer, "")
		f.Detail += ", for the copies of " + quoteAll(queues)
	default:
		f.State, f.Detail = NotVerified, fmt.Sprintf("publishing is not answered (an alarm blocks it?): %v", err)
	}
	a.report.Findings = append(a.report.Findings, f)
	return nil
}
