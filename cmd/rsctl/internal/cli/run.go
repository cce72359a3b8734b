package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/tracing"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/threads"
	"github.com/rsctl/rsctl/pkg/service"
	"github.com/rsctl/rsctl/pkg/spec"
)

// defaultLoginPatience leaves whoever replaces a password the time to do it on
// both sides.
const defaultLoginPatience = 5 * time.Minute

type runFlags struct {
	queues          []string
	drain           bool
	timeout         time.Duration
	shutdownTimeout time.Duration
	loginPatience   time.Duration
	listen          listenFlag
	logFormat       choice
	logLevel        choice
}

func newRun(a *app) *cobra.Command {
	f := runFlags{
		logFormat: choice{value: "auto", allowed: []string{"auto", "text", "json"}},
		logLevel:  choice{value: "info", allowed: []string{"debug", "info", "warn", "error"}},
	}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Consume, call the handlers, settle",
		Long: `Consume every queue that has a handler, call the handler for each delivery and
settle it as the spec says; "rsctl explain" prints how.

With "declare_topology: true" what the queues need is declared first. Otherwise
every queue, dead-letter queue and exchange they need must exist, and copies that
wait or are retried must find their way back; what is missing or leads elsewhere
stops the start. A broker that cannot be reached is tried for ever; a wrong
password, vhost or permission is not. Later the run goes on trying, with what
${file:…} in the broker's URL holds by then; a login that has worked and is
refused for --login-patience ends it.

The first SIGINT, SIGTERM, SIGQUIT or SIGHUP drains: no new deliveries, running
handlers finish, up to --shutdown-timeout. A second one stops at once; what was
not settled is delivered again. Exit code 0 after a drain, 1 when the spec, the
topology or a handler does not allow a start, 3 when the broker refuses or a
drain was cut short.

--drain stops when the queues are empty and no handler runs; when they are not
within --timeout, with exit code 3. It waits for retries
that the process holds (timer, hold). Retries that wait on the broker (dlx_ttl,
levels) may be due in days and are not waited for; the log says how many there
are and where. What a delayed exchange (plugin_dme) or RabbitMQ itself (native)
holds back cannot be seen.

--listen answers /healthz (the process lives), /readyz (every queue is consumed
and none is paused) and /metrics (Prometheus). When the default address is taken,
by another rsctl on the same machine, the run goes on without.

In a container rsctl may be process 1: it then works in a child process, and
collects what handlers leave behind.`,
		Example: `  rsctl run
  rsctl run --queue orders --queue mail
  rsctl run --drain            work until the queues are empty, then stop
  rsctl run --listen :9419     answer probes and Prometheus from other machines
  rsctl run --log-format json --log-level debug`,
		Args: func(cmd *cobra.Command, args []string) error {
			a.openLog(f.logFormat.value, f.logLevel.value)
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, f) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.openLog(f.logFormat.value, f.logLevel.value)
		return flagError(cmd, err)
	})
	f.bind(a, cmd)
	return cmd
}

func (f *runFlags) bind(a *app, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.queues, "queue", nil, "consume only this `QUEUE`; may be repeated")
	fl.BoolVar(&f.drain, "drain", false, "stop when the queues are empty")
	fl.DurationVar(&f.timeout, "timeout", 0, "with --drain, longest time until the queues are empty; 0 is for ever")
	fl.DurationVar(&f.shutdownTimeout, "shutdown-timeout", runtime.DefaultShutdownTimeout, "longest drain after a signal")
	fl.DurationVar(&f.loginPatience, "login-patience", defaultLoginPatience, "longest time that a login which has worked may be refused; 0 is no limit")
	fl.StringVar(&f.listen.addr, "listen", defaultListen, "`ADDRESS` of /healthz, /readyz and /metrics; \"\" is none")
	f.listen.given = func() bool { return fl.Changed("listen") }
	fl.StringArrayVar(&f.listen.hosts, "listen-host", nil, "also answer requests for this host `NAME` on --listen; \"*\" is any; may be repeated")
	fl.Var(&f.logFormat, "log-format", "`form` of the log: auto (text on a terminal, json otherwise), text or json")
	fl.Var(&f.logLevel, "log-level", "least `level` that is logged: debug, info, warn or error")
	complete(cmd, "queue", a.completeQueues)
	complete(cmd, "log-format", f.logFormat.complete)
	complete(cmd, "log-level", f.logLevel.complete)
}

func run(ctx context.Context, a *app, f runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	queues, err := selectQueues(s, f.queues)
	if err != nil {
		return err
	}
	if err := runnable(s, queues); err != nil {
		return err
	}
	st := stopOnSignal(ctx, graceOf(queues), a.log.Logger)
	defer st.end()
	f.listen.logDrops = a.log.pipe.Dropped
	done := make(chan error, 1)
	go func() { done <- consume(ctx, a.log.Logger, st, s, namesOf(queues), f) }()
	select {
	case err := <-done:
		return err
	case <-st.hard: // what does not end is left to the end of the process
		return &failure{err: fmt.Errorf("%w (interrupted twice); what was not settled will be delivered again, and delayed copies that waited in the process (delay: timer) may be lost", runtime.ErrCutShort)}
	}
}

func (f runFlags) check() error {
	if f.shutdownTimeout <= 0 {
		return usagef("for example 25s", "--shutdown-timeout must be above zero, got %s", f.shutdownTimeout)
	}
	if f.loginPatience < 0 {
		return usagef("for example 5m, or 0 for no limit", "--login-patience must not be below zero, got %s", f.loginPatience)
	}
	if f.timeout < 0 {
		return usagef("for example 10m", "--timeout must not be below zero, got %s", f.timeout)
	}
	if f.timeout > 0 && !f.drain {
		return usagef("add --drain, or leave --timeout out", "--timeout is for --drain")
	}
	return f.listen.check()
}

// graceOf is the longest time that a handler has between SIGTERM and SIGKILL.
func graceOf(queues []*spec.Queue) time.Duration {
	var grace time.Duration
	for _, q := range queues {
		grace = max(grace, q.Handler.KillGrace)
	}
	return grace
}

// consume runs from the first look at the handlers until everything has ended.
func consume(ctx context.Context, log *slog.Logger, st *stop, s *spec.Spec, names []string, f runFlags) error {
	if err := threads.Reserve(threads.ForHandlers); err != nil {
		log.Warn("no threads were made in advance; a limit of processes may end rsctl", "error", err)
	}
	tracer := tracing.FromEnvironment(ctx, readVersion().Version, log)
	defer tracer.Close()
	bodies := memory.NewBodies(s.MaxInMemory, log)
	page := f.listen.page(names, bodies)
	svc, err := service.New(s, service.Options{
		Log: log, Queues: names, Wrap: tracer.Wrap, Observer: page.observer(), Bodies: bodies,
		Drain: f.drain, DrainTimeout: f.timeout, ShutdownTimeout: f.shutdownTimeout, LoginPatience: f.loginPatience,
	})
	if err != nil {
		return endError(err, f)
	}
	defer context.AfterFunc(st.work, func() { _ = svc.Stop(st.work) })() // Run returns its error
	if err := svc.CheckHandlers(st.intake); err != nil {
		if st.intake.Err() != nil { // a stop has cut the look at the handlers; Run says so
			err = svc.Run(st.intake)
		}
		return endError(err, f)
	}
	if os.Getpid() == 1 {
		log.Warn("running as process 1: processes that handlers leave behind are not collected; start the container with an init")
	}
	defer limitMemory(s.MaxInMemory)()
	closeServer, err := page.serve(ctx, log)
	if err != nil {
		return err
	}
	defer closeServer()
	return endError(svc.Run(st.intake), f)
}

// endError says why a run has not started, or not come to its end.
func endError(err error, f runFlags) error {
	var start *service.StartError
	var login *service.LoginError
	switch {
	case errors.As(err, &start):
		return &negative{start.Error(), start.Hint()}
	case errors.As(err, &login):
		return &failure{login, login.Hint() + "; --login-patience says how long a refused login is tried again"}
	case errors.Is(err, runtime.ErrCutShort):
		return &failure{err: fmt.Errorf("%w; what was not settled will be delivered again", err)}
	case errors.Is(err, runtime.ErrNotDrained):
		return &failure{err: fmt.Errorf("gave up after %s (--timeout): %w", f.timeout, err)}
	}
	return err
}

// selectQueues returns the queues to consume: those with a handler, or of them
// the named ones.
func selectQueues(s *spec.Spec, names []string) ([]*spec.Queue, error) {
	var known []string
	var out []*spec.Queue
	chosen := map[string]bool{}
	for _, n := range names {
		chosen[n] = true
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		known = append(known, q.Name)
		if len(names) == 0 && q.Handler != nil || chosen[q.Name] {
			out = append(out, q)
			delete(chosen, q.Name)
		}
	}
	for _, n := range names {
		if chosen[n] {
			return nil, usagef(queueHint(known), "%s has no queue %q%s", s.File, n, didYouMean(n, known))
		}
	}
	return out, nil
}
