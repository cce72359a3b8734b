package cli

import (
	"context"
	"log/slog"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/kinds"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// newHook makes the hook of a queue that has a handler.
func newHook(s *spec.Spec, q *spec.Queue, log *slog.Logger) (hooks.Hook, error) {
	return kinds.New(q.Handler, kinds.Options{
		Log: log, Queue: q.Name, Concurrency: q.Concurrency, Dir: s.Dir,
	})
}

// hookFinding is the result of a hook's own check.
func hookFinding(ctx context.Context, s *spec.Spec, q *spec.Queue) finding {
	pos := q.At("handler")
	f := finding{
		Kind: "handler", Name: q.Name, State: string(broker.OK), Role: string(q.Handler.Kind),
		File: s.File, Line: pos.Line, Column: pos.Col,
	}
	hook, err := newHook(s, q, slog.New(slog.DiscardHandler))
	if err != nil {
		return f.is(broker.Refused, err.Error())
	}
	if c, ok := hook.(hooks.Closer); ok {
		defer c.Close()
	}
	c, ok := hook.(hooks.Checker)
	if !ok {
		return f.is(broker.NotVerified, "this kind of handler cannot be checked without a message")
	}
	if err := c.Check(ctx); err != nil {
		return f.is(broker.Missing, err.Error())
	}
	if p, ok := hook.(hooks.Prober); ok {
		if err := p.Probe(ctx); err != nil {
			return f.is(broker.Refused, err.Error())
		}
	}
	return f
}

func (f finding) is(s broker.State, detail string) finding {
	f.State, f.Detail = string(s), detail
	return f
}

// management opens the management API when the spec names one.
func management(b spec.Broker) (*broker.Management, error) {
	if b.ManagementURL.Value == "" {
		return nil, nil
	}
	return broker.NewManagement(b)
}
