package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

type applyFlags struct{ timeout time.Duration }

func newApply(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Declare the topology on the broker",
		Long: `Declare every exchange, queue and binding that the spec needs, in that order.

Nothing is ever deleted or changed: RabbitMQ refuses to redeclare an object with
other settings, and such a conflict is reported with what the broker has and
what the spec wants. Everything that can be declared is declared; all conflicts
are reported together.

Exit code 1 when something conflicts, is missing or was refused; 3 when the
broker cannot be reached or refuses the login.`,
		Example: `  rsctl apply
  rsctl apply --url amqp://admin:secret@mq.internal/shop
  rsctl apply --output json`,
		Annotations: map[string]string{formats: "text json"},
		Args:        noArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return apply(cmd.Context(), a, f) },
	}
	bindTimeout(cmd, &f.timeout)
	return cmd
}

func apply(ctx context.Context, a *app, f applyFlags) error {
	s, err := a.load()
	if err != nil {
		return err
	}
	ctx, stop := limited(ctx, f.timeout)
	defer stop()
	session, err := open(ctx, s.Broker, "apply")
	if err != nil {
		return err
	}
	defer session.Close()

	server := session.Server()
	t := topology.Compile(s, server)
	a.progress("declaring %s at %s…", plural(size(t), "object"), s.Broker)
	found, err := broker.Apply(ctx, session, t.Shared(), a.warnings())
	found.Findings = append(found.Findings, broker.Leave(t)...)
	findings := fromReport(s.File, found)
	err = whyEnded(ctx, err)
	r := report{
		Command: "apply", OK: err == nil && !failed(findings), Findings: findings,
		Broker: s.Broker.String(), Version: server.Version, Error: errorText(err),
	}
	return a.conclude(r, err)
}

func size(t *topology.Topology) int { return len(t.Exchanges) + len(t.Queues) + len(t.Bindings) }
