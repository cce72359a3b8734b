package service

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// preparer declares or verifies the topology of a run after every connect.
type preparer struct {
	spec  *spec.Spec
	names []string
	log   *slog.Logger

	proved bool // that copies arrive, as far as can be seen; prepare runs once at a time

	mu     sync.Mutex
	warned map[string]bool
}

func (p *preparer) dial(ctx context.Context, purpose string) (*amqp.Connection, error) {
	return broker.Dial(ctx, p.spec.Broker, purpose)
}

func (p *preparer) prepare(ctx context.Context, conn *amqp.Connection) error {
	session := p.on(conn)
	defer session.Close() // what it has dialled itself
	need := p.need(session, p.names...)
	if err := p.ensure(ctx, session, need); err != nil || p.proved {
		return err
	}
	return p.prove(ctx, session, need)
}

func (p *preparer) on(conn *amqp.Connection) *broker.Session {
	return broker.On(conn, func(ctx context.Context) (*amqp.Connection, error) {
		return p.dial(ctx, "prepare")
	})
}

// need is what the subscriptions to the named queues need of what all connections may
// use.
func (p *preparer) need(session *broker.Session, names ...string) *topology.Topology {
	return topology.Compile(p.spec, session.Server()).For(names...).Shared()
}

// ensure declares need, or verifies that it is there.
func (p *preparer) ensure(ctx context.Context, session *broker.Session, need *topology.Topology) error {
	r, err := p.look(ctx, session, need)
	if err != nil {
		return err
	}
	return p.judge(r)
}

func (p *preparer) look(ctx context.Context, session *broker.Session, need *topology.Topology) (*broker.Report, error) {
	if p.spec.DeclareTopology {
		return broker.Apply(ctx, session, need, p.log)
	}
	return broker.Verify(ctx, session, need)
}

// prove finds out, once, whether copies arrive where they must. What cannot be seen of
// that is one warning.
func (p *preparer) prove(ctx context.Context, session *broker.Session, need *topology.Topology) error {
	mgmt, err := broker.NewManagement(p.spec.Broker)
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
	for _, f := range r.Findings {
		if f.State == broker.NotVerified {
			hidden = append(hidden, title(f)+": "+f.Detail)
		}
	}
	if len(hidden) > 0 {
		p.log.Warn("not verified: copies that go astray would be lost; set broker.management_url", "detail", strings.Join(hidden, "; "))
	}
	return nil
}

// declareOwn returns what declares an exclusive queue on the connection that consumes
// it.
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

// declareAgain returns what declares one queue, and what it needs, that has gone during
// a run. Several queues may do so at a time.
func (p *preparer) declareAgain(queue string) func(context.Context, *amqp.Connection) error {
	return func(ctx context.Context, conn *amqp.Connection) error {
		session := p.on(conn)
		defer session.Close()
		return p.ensure(ctx, session, p.need(session, queue))
	}
}

// judge logs each warning once and collects everything that forbids a start. A queue
// that is only locked by another connection may be free in a moment.
func (p *preparer) judge(r *broker.Report) error {
	for _, f := range r.Findings {
		if f.State == broker.Warned {
			p.warnOnce(f)
		}
	}
	if !r.Failed() {
		return nil
	}
	var refusal *broker.Refusal
	if err := r.Err(); err != nil && !errors.As(err, &refusal) {
		return err
	}
	return &StartError{failures(p.spec.File, r)}
}

// failures are the findings of r that forbid a start.
func failures(file string, r *broker.Report) []Problem {
	var problems []Problem
	for _, f := range r.Findings {
		switch f.State {
		case broker.OK, broker.Created, broker.NotVerified, broker.Warned:
		default:
			problems = append(problems, problemOf(file, f))
		}
	}
	return problems
}

func (p *preparer) warnOnce(f broker.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned == nil {
		p.warned = map[string]bool{}
	}
	if text := f.String(); !p.warned[text] {
		p.warned[text] = true
		p.log.Warn("topology is usable, but messages may be lost", "object", title(f), "detail", f.Detail)
	}
}

// title names an object in words: queue "orders".
func title(f broker.Finding) string { return f.Kind + " " + strconv.Quote(f.Name) }
