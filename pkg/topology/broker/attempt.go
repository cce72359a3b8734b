package broker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/rsctl/rsctl/pkg/topology"
)

// attempt is one run over a topology.
type attempt struct {
	*Session
	srv    topology.Server
	log    *slog.Logger
	report Report
	absent map[string]bool // by kind and name, as known so far
}

// steps are what an attempt does with each object.
type steps struct {
	exchange func(context.Context, topology.Exchange) (Finding, error)
	queue    func(context.Context, topology.Queue) (Finding, error)
	binding  func(context.Context, topology.Binding) (Finding, error)
}

func (a *attempt) run(ctx context.Context, t *topology.Topology, do steps) (*Report, error) {
	for _, x := range t.Exchanges {
		if err := a.add(do.exchange(ctx, x)); err != nil {
			return &a.report, err
		}
	}
	for _, q := range t.Queues {
		if err := a.add(do.queue(ctx, q)); err != nil {
			return &a.report, err
		}
	}
	if do.binding == nil {
		return &a.report, nil
	}
	for _, b := range t.Bindings {
		if err := a.add(do.binding(ctx, b)); err != nil {
			return &a.report, err
		}
	}
	return &a.report, nil
}

func (a *attempt) add(f Finding, err error) error {
	if err != nil {
		return err
	}
	a.report.Findings = append(a.report.Findings, f)
	if f.State == Created {
		a.log.Info("created", "kind", f.Kind, "name", f.Name)
	}
	return nil
}

// markAbsent remembers that nothing can be bound to an object.
func (a *attempt) markAbsent(f Finding) { a.absent[f.Kind+" "+f.Name] = true }

// lostEnd names the end of a binding that is known not to be there.
func (a *attempt) lostEnd(b topology.Binding) (string, bool) {
	if a.absent[kindExchange+" "+b.Source] {
		return fmt.Sprintf("exchange %q", b.Source), true
	}
	kind := kindQueue
	if b.ToExchange {
		kind = kindExchange
	}
	if a.absent[kind+" "+b.Destination] {
		return fmt.Sprintf("%s %q", kind, b.Destination), true
	}
	return "", false
}
