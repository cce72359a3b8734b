package service_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/service"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// A service is part of somebody's program: what counts, prints and takes signals is
// that program's.
func TestService_LeavesTheProcessAlone(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if dep == "os/signal" || strings.HasPrefix(dep, "github.com/prometheus/") || strings.HasPrefix(dep, "github.com/spf13/") || strings.Contains(dep, "/cmd/rsctl") {
			t.Errorf("package service depends on %s: that belongs to the program", dep)
		}
	}
}

// parsed reads queues.yaml with these lines of queues.
func parsed(t *testing.T, queues ...string) *spec.Spec {
	t.Helper()
	text := "version: 1\ndeclare_topology: true\nqueues:\n"
	for _, q := range queues {
		text += "  - {" + q + "}\n"
	}
	s, problems := spec.Parse([]byte(text), spec.Options{File: "queues.yaml", Dir: t.TempDir(), LookupEnv: os.LookupEnv})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return s
}

func ack(context.Context, hooks.Message) (hooks.Outcome, error) {
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

// unique is a queue name that no other test, and no run of this one, uses.
func unique(base string) string { return base + "-" + strings.ToLower(rand.Text()[:8]) }

// one is the handler of one queue.
func one(queue string, f hooks.Func) map[string]service.Handler {
	return map[string]service.Handler{queue: {Hook: f}}
}

// start runs a service of s until the end of the test, and returns what Run returns.
func start(t *testing.T, ctx context.Context, s *spec.Spec, o service.Options) (*service.Service, <-chan error) {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	svc, err := service.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	t.Cleanup(func() { _ = svc.Stop(t.Context()) }) // the context has ended: at once
	return svc, done
}

func TestNew_RefusesAllThatCannotRun(t *testing.T) {
	t.Parallel()
	s := parsed(t, "name: a, type: classic, handler: {exec: [./a.sh]}", "name: b, type: classic", "name: rows, type: classic, prefetch: 2, batch: {size: 2, wait: 1s}")
	hook := hooks.Func(ack)
	for name, tt := range map[string]struct {
		o    service.Options
		want string
	}{
		"a queue that is not there":         {service.Options{Queues: []string{"z"}}, `queues.yaml: there is no queue "z"`},
		"a queue without a handler":         {service.Options{Queues: []string{"b"}}, `queues.yaml:5:12: queue "b" has no handler`},
		"a handler of no queue":             {service.Options{Handlers: one("z", hook)}, `queues.yaml: Options.Handlers has a handler of queue "z", which the spec does not have`},
		"two handlers":                      {service.Options{Handlers: one("a", hook)}, `queues.yaml:4:39: queue "a" has a handler in the spec and one in Options.Handlers`},
		"a handler that is nil":             {service.Options{Handlers: map[string]service.Handler{"b": {}}}, `queues.yaml:5:12: the handler of queue "b" in Options.Handlers has no Hook`},
		"a batch for a hook of one":         {service.Options{Handlers: one("rows", hook)}, `queues.yaml:6:53: queue "rows" has batch, and its Hook in Options.Handlers takes one message at a time`},
		"a negative timeout":                {service.Options{Handlers: map[string]service.Handler{"b": {Hook: hook, Timeout: -1}}}, `queues.yaml:5:12: the timeout of the handler of queue "b" is negative`},
		"several at once, one on each line": {service.Options{Queues: []string{"y", "z"}}, "cannot start:\n  queues.yaml: there is no queue \"y\"\n  queues.yaml: there is no queue \"z\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := service.New(s, tt.o)
			var start *service.StartError
			if !errors.As(err, &start) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New() = %v, want a StartError with %q", err, tt.want)
			}
		})
	}
}

func TestNew_RefusesASpecWithNothingToRun(t *testing.T) {
	t.Parallel()
	_, err := service.New(parsed(t, "name: a, type: classic"), service.Options{})
	var start *service.StartError
	if !errors.As(err, &start) || start.Hint() != "give a queue a handler, in the spec or in Options.Handlers" {
		t.Errorf("New() = %v, want a StartError that says what to do", err)
	}
}

func TestNew_RefusesNoSpec(t *testing.T) {
	t.Parallel()
	if _, err := service.New(nil, service.Options{}); err == nil || err.Error() != "cannot start: there is no spec; Parse returns none when it has found errors" {
		t.Errorf("New() = %v", err)
	}
}

func TestNew_LeavesItsSpecAsItIs(t *testing.T) {
	t.Parallel()
	s := parsed(t, "name: a, type: classic")
	svc, err := service.New(s, service.Options{Handlers: one("a", ack)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Queue("a").Handler != nil {
		t.Error("the spec has got a handler")
	}
	if got := fmt.Sprint(svc.Queues()); got != "[a]" {
		t.Errorf("it consumes %s, want a", got)
	}
}

func TestRun_EndsWithItsContextAfterTheHandlers(t *testing.T) {
	t.Parallel()
	queue := unique("run-drains")
	s := parsed(t, "name: "+queue+", type: classic")
	publish(s, queue, "x")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var called, release = make(chan error), make(chan struct{})
	_, done := start(t, ctx, s, service.Options{Handlers: one(queue, func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
		called <- nil
		<-release
		called <- ctx.Err()
		return hooks.Outcome{Verdict: hooks.Ack}, nil
	})})
	<-called
	end()
	close(release)
	if err := <-called; err != nil {
		t.Errorf("the handler's context has ended with Run's: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	if n := ready(t, s, queue); n != 0 {
		t.Errorf("%d messages are left, want the one to be acked", n)
	}
}

func TestStop_EndsHandlersWithItsContext(t *testing.T) {
	t.Parallel()
	queue := unique("stop-kills")
	s := parsed(t, "name: "+queue+", type: classic")
	publish(s, queue, "x")
	called := make(chan struct{})
	svc, done := start(t, t.Context(), s, service.Options{Handlers: one(queue, func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
		close(called)
		<-ctx.Done()
		return hooks.Outcome{}, nil
	})})
	<-called
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := svc.Stop(ctx)
	if !errors.Is(err, runtime.ErrCutShort) || !errors.Is(err, why) {
		t.Errorf("Stop() = %v, want ErrCutShort for the cause of its context", err)
	}
	if of := <-done; of != err {
		t.Errorf("Run() = %v, want what Stop returned: %v", of, err)
	}
	awaitReady(t, s, queue, 1) // the one of the ended handler
	if err := svc.Run(t.Context()); err == nil {
		t.Error("a second Run returned nil")
	}
}

func TestStop_BeforeRunLetsNothingStart(t *testing.T) {
	t.Parallel()
	closed := closing{Func: ack, closed: make(chan struct{}, 1)}
	svc, err := service.New(parsed(t, "name: stop-first, type: classic"), service.Options{
		Handlers: map[string]service.Handler{"stop-first": {Hook: closed}}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.Stop(t.Context()); err != nil {
		t.Errorf("Stop() = %v", err)
	}
	<-closed.closed
	if err := svc.Run(t.Context()); err != nil {
		t.Errorf("Run() after Stop() = %v", err)
	}
}

// closing is a handler that holds something.
type closing struct {
	hooks.Func
	closed chan struct{}
}

func (c closing) Close() error {
	select {
	case c.closed <- struct{}{}:
	default:
	}
	return nil
}

func TestRun_SurvivesAHandlerThatPanics(t *testing.T) {
	t.Parallel()
	queue := unique("panics")
	s := parsed(t, "name: "+queue+", type: quorum, max_attempts: 2, dead_letter: "+queue+".dead")
	publish(s, queue, "x")
	log := &lines{}
	_, done := start(t, t.Context(), s, service.Options{
		Drain: true, Log: slog.New(slog.NewTextHandler(log, nil)),
		Handlers: one(queue, func(context.Context, hooks.Message) (hooks.Outcome, error) { panic("index out of range") }),
	})
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	awaitReady(t, s, queue+".dead", 1)
	if n := strings.Count(log.String(), "handler panicked;"); n != 2 || !strings.Contains(log.String(), "service_test.go") {
		t.Errorf("the log tells of %d panics, want 2 with their stack:\n%s", n, log)
	}
}

func TestRun_RefusesAQueueOfAnotherType(t *testing.T) {
	t.Parallel()
	queue := unique("other-type")
	publish(parsed(t, "name: "+queue+", type: classic"), queue, "x")
	s := parsed(t, "name: "+queue+", type: quorum")
	_, done := start(t, t.Context(), s, service.Options{Handlers: one(queue, ack)})
	err := <-done
	var start *service.StartError
	if !errors.As(err, &start) || !strings.HasPrefix(err.Error(), fmt.Sprintf("cannot start: queues.yaml:4:12: queue %q: conflict: ", queue)) {
		t.Errorf("Run() = %v, want a StartError with the conflict and its place", err)
	}
}

func TestCheck_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	queue := unique("checked-here")
	s := parsed(t, "name: checked, type: classic, handler: {exec: [./no-such-file]}")
	svc, err := service.New(s, service.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	err = svc.Check(t.Context())
	for _, want := range []string{
		`queues.yaml:4:45: handler of queue "checked": `,
		`queues.yaml:4:12: queue "checked": missing`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check() = %v, want a line with %s", err, want)
		}
	}
	here := parsed(t, "name: "+queue+", type: classic")
	svc, err = service.New(here, service.Options{Handlers: one(queue, ack)})
	if err != nil {
		t.Fatal(err)
	}
	publish(here, queue)
	if err := svc.Check(t.Context()); err != nil {
		t.Errorf("Check() of what is there = %v", err)
	}
}

func TestRun_WrapsEachHookAndTellsTheObserver(t *testing.T) {
	t.Parallel()
	queue := unique("wrapped")
	s := parsed(t, "name: "+queue+", type: classic")
	publish(s, queue, "x", "y")
	seen := &counter{}
	_, done := start(t, t.Context(), s, service.Options{
		Handlers: one(queue, ack), Drain: true, Observer: seen,
		Wrap: func(h hooks.Hook) hooks.Hook {
			return hooks.Func(func(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
				seen.add("wrapped")
				return h.Handle(ctx, m)
			})
		},
	})
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	if seen.of["wrapped"] != 2 || seen.of["runtime.Settled"] != 2 {
		t.Errorf("seen %v, want 2 calls and 2 settlements", seen.of)
	}
}

// counter counts events by their type.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counter) Observe(e runtime.Event) { c.add(fmt.Sprintf("%T", e)) }

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what]++
}

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// awaitReady waits until a queue has so many messages: the server dead-letters after the
// consumer has heard of it.
func awaitReady(t *testing.T, s *spec.Spec, queue string, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := ready(t, s, queue)
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("queue %s has %d messages, want %d", queue, n, want)
		}
	}
}

// ready is how many messages a queue has that is there.
func ready(t *testing.T, s *spec.Spec, queue string) int {
	t.Helper()
	conn, err := broker.Dial(t.Context(), s.Broker, "look")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}
