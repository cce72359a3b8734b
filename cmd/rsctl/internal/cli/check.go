package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

type checkFlags struct {
	noHandlers bool
	timeout    time.Duration
}

func newCheck(a *app) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify that the broker has what the spec relies on",
		Long: `Verify, for CI, that everything the spec relies on is there: queues, dead-letter
queues, exchanges, and the commands of the handlers. Nothing is changed.

Types and arguments are compared by the server, which needs configure permission.
Bindings and policies are visible only through broker.management_url; what could
not be seen is reported as "not verified", never as ok.

Exit code 1 when something is missing or differs, 3 when the broker cannot be
reached or refuses the login.`,
		Example: `  rsctl check
  rsctl check --output github                     annotations in a GitHub workflow
  rsctl check --output junit > check.xml
  rsctl check --no-handlers --management-url http://guest:guest@localhost:15672`,
		Annotations: map[string]string{formats: "text json github junit sarif"},
		Args:        noArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), a, f) },
	}
	cmd.Flags().BoolVar(&f.noHandlers, "no-handlers", false, "leave the handlers out: their commands are on another machine")
	bindTimeout(cmd, &f.timeout)
	return cmd
}

func check(ctx context.Context, a *app, f checkFlags) error {
	s, problems, err := a.parse(a.file)
	if err != nil {
		return err
	}
	if problems.HasErrors() {
		return a.checkInvalid(problems)
	}
	a.override(&s.Broker)
	a.warnOverridden(s.Broker)
	findings := a.specFindings(problems)
	ctx, stop := limited(ctx, f.timeout)
	defer stop()
	if !f.noHandlers {
		findings = append(findings, checkHooks(ctx, s)...)
	}
	found, server, err := lookAt(ctx, s)
	findings = append(findings, fromReport(s.File, found)...)
	return a.conclude(report{
		Command: "check", OK: err == nil && !failed(findings), Findings: findings,
		Broker: s.Broker.String(), Version: server.Version, Error: errorText(err),
	}, err)
}

// checkInvalid reports a spec with errors in the chosen form; nothing is
// contacted.
func (a *app) checkInvalid(problems spec.Problems) error {
	if a.output.value == "text" {
		printProblems(a.stderr(), problems)
		return &negative{message: summary(a.file, nil, problems)}
	}
	return a.conclude(report{Command: "check", Findings: fromProblems(problems)}, nil)
}

// specFindings puts the spec's warnings where the chosen form has them.
func (a *app) specFindings(problems spec.Problems) []finding {
	if a.output.value == "text" {
		printProblems(a.stderr(), problems)
		return nil
	}
	return fromProblems(problems)
}

// lookAt compares the broker with the spec. What was found stands also when the
// error says that not everything could be looked at.
func lookAt(ctx context.Context, s *spec.Spec) (*broker.Report, topology.Server, error) {
	mgmt, err := management(s.Broker)
	if err != nil {
		return nil, topology.Server{}, err
	}
	session, err := open(ctx, s.Broker, "check")
	if err != nil {
		return nil, topology.Server{}, err
	}
	defer session.Close()
	server := session.Server()
	found, err := broker.Check(ctx, session, mgmt, topology.Compile(s, server))
	return found, server, whyEnded(ctx, err)
}

// checkHooks asks the handler of each queue whether it could run.
func checkHooks(ctx context.Context, s *spec.Spec) []finding {
	var out []finding
	for i := range s.Queues {
		if q := &s.Queues[i]; q.Handler != nil {
			out = append(out, hookFinding(ctx, s, q))
		}
	}
	return out
}
