package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// startProblems are all reasons why run cannot start, found in one go.
type startProblems struct{ lines, hints []string }

func (p *startProblems) add(line, hint string) {
	p.lines = append(p.lines, line)
	if hint != "" {
		p.hints = append(p.hints, hint)
	}
}

func (p *startProblems) Error() string {
	if len(p.lines) == 1 {
		return "cannot start: " + p.lines[0]
	}
	return "cannot start:\n  " + strings.Join(p.lines, "\n  ")
}

// hint is the first one; further ones rarely say anything new.
func (p *startProblems) hint() string {
	if len(p.hints) == 0 {
		return ""
	}
	return p.hints[0]
}

// preparer declares or verifies the topology of a run after every connect.
type preparer struct {
	spec  *spec.Spec
	names []string
	log   *slog.Logger

	proved bool // that copies arrive, as far as can be seen; prepare runs once at a time

	mu     sync.Mutex
	warned map[string]bool
}

func (p *preparer) prepare(ctx context.Context, conn *amqp.Connection) error {
	session := p.on(conn)
	defer session.Close() // what it has dialled itself
	need := p.need(session, p.names)
	if err := p.ensure(ctx, session, need); err != nil || p.proved {
		return err
	}
	return p.prove(ctx, session, need)
}

func (p *preparer) on(conn *amqp.Connection) *broker.Session {
	return broker.On(conn, func(ctx context.Context) (*amqp.Connection, error) {
		return broker.Dial(ctx, p.spec.Broker, "prepare")
	})
}

// need is what the subscriptions to the named queues need of what all connections
// may use.
func (p *preparer) need(session *broker.Session, names []string) *topology.Topology {
	return neededBy(topology.Compile(p.spec, session.Server()), names).Shared()
}

// ensure declares need, or verifies that it is there.
func (p *preparer) ensure(ctx context.Context, session *broker.Session, need *topology.Topology) error {
	r, err := p.look(ctx, session, need)
	if err != nil {
		return err
	}
	return p.judge(r)
}

// prove finds out, once, whether copies arrive where they must. What cannot be
// seen of that is one warning.
func (p *preparer) prove(ctx context.Context, session *broker.Session, need *topology.Topology) error {
	mgmt, err := management(p.spec.Broker)
	if err != nil {
		return err
	}
	var declared *topology.Topology
	if p.spec.DeclareTopology {
		declared = need
	}
	r, err := broker.Prove(ctx, session, mgmt, need, declared)
	if err != nil {
		return err
	}
	if err := p.judge(r); err != nil {
		return err
	}
	p.proved = true
	var hidden []string
	for _, f := range fromReport(p.spec.File, r) {
		if f.level() == levelNote {
			hidden = append(hidden, f.title()+": "+f.Detail)
		}
	}
	if len(hidden) > 0 {
		p.log.Warn("not verified: copies that go astray would be lost; set broker.management_url", "detail", strings.Join(hidden, "; "))
	}
	return nil
}

// declareOwn returns what declares an exclusive queue on the connection that
// consumes it.
func (p *preparer) declareOwn(queue string) func(context.Context, *amqp.Connection) error {
	return func(ctx context.Context, conn *amqp.Connection) error {
		session := broker.On(conn, nil)
		r, err := broker.Apply(ctx, session, topology.Compile(p.spec, session.Server()).Own(queue), p.log)
		if err != nil {
			return err
		}
		return r.Err()
	}
}

// declareAgain returns what declares one queue, and what it needs, that has gone
// during a run. Several queues may do so at a time.
func (p *preparer) declareAgain(queue string) func(context.Context, *amqp.Connection) error {
	return func(ctx context.Context, conn *amqp.Connection) error {
		session := p.on(conn)
		defer session.Close()
		return p.ensure(ctx, session, p.need(session, []string{queue}))
	}
}

func (p *preparer) look(ctx context.Context, session *broker.Session, need *topology.Topology) (*broker.Report, error) {
	if p.spec.DeclareTopology {
		return broker.Apply(ctx, session, need, p.log)
	}
	return broker.Verify(ctx, session, need)
}

// judge logs each warning once and collects everything that forbids a start. A
// queue that is only locked by another connection may be free in a moment.
func (p *preparer) judge(r *broker.Report) error {
	problems := &startProblems{}
	for _, f := range fromReport(p.spec.File, r) {
		switch f.level() {
		case levelError:
			problems.add(where(f)+f.message(), f.Hint)
		case levelWarning:
			p.warnOnce(f)
		}
	}
	if len(problems.lines) == 0 {
		return nil
	}
	var refusal *broker.Refusal
	if err := r.Err(); err != nil && !errors.As(err, &refusal) {
		return err
	}
	return problems
}

func (p *preparer) warnOnce(f finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned == nil {
		p.warned = map[string]bool{}
	}
	if text := f.message(); !p.warned[text] {
		p.warned[text] = true
		p.log.Warn("topology is usable, but messages may be lost", "object", f.title(), "detail", f.Detail)
	}
}

// neededBy returns the part of t that the subscriptions to the named queues
// need, in t's order.
func neededBy(t *topology.Topology, names []string) *topology.Topology {
	needed := make(map[string]bool, len(names))
	for _, n := range names {
		needed[n] = true
	}
	unneeded := func(o topology.Origin) bool {
		return !slices.ContainsFunc(o.Queues, func(q string) bool { return needed[q] })
	}
	return &topology.Topology{
		Exchanges:     slices.DeleteFunc(slices.Clone(t.Exchanges), func(x topology.Exchange) bool { return unneeded(x.Origin) }),
		Queues:        slices.DeleteFunc(slices.Clone(t.Queues), func(q topology.Queue) bool { return unneeded(q.Origin) }),
		Bindings:      slices.DeleteFunc(slices.Clone(t.Bindings), func(b topology.Binding) bool { return unneeded(b.Origin) }),
		DefaultCopies: slices.DeleteFunc(slices.Clone(t.DefaultCopies), func(q string) bool { return !needed[q] }),
		Trips:         slices.DeleteFunc(slices.Clone(t.Trips), func(trip topology.Trip) bool { return !needed[trip.Queue] }),
	}
}
