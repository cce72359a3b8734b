package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/kinds"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A workerClient is one of examples/workers and what runs it.
type workerClient struct{ file, interpreter string }

var workerClients = []workerClient{
	{"worker.py", "python3"},
	{"worker.js", "node"},
	{"worker.go", "go"},
	{"worker.php", "php"},
	{"worker.rb", "ruby"},
	{"worker.sh", "sh"},
}

func TestEveryWorkerClientIsTried(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(example(t, "workers/*"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range files {
		got = append(got, filepath.Base(f))
	}
	for _, c := range workerClients {
		want = append(want, c.file)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("examples/workers holds %q, tried are %q", got, want)
	}
}

func TestWorkerClientAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range workerClients {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			if command := c.command(t); command != nil {
				tryWorker(t, command)
			}
		})
	}
}

// command returns what starts the client, or nil when its interpreter is
// missing and may be: "make test" names the missing ones.
func (c workerClient) command(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath(c.interpreter)
	switch {
	case err != nil && os.Getenv("RSCTL_REQUIRE_INTERPRETERS") == "1":
		t.Errorf("install %s: RSCTL_REQUIRE_INTERPRETERS asks for every client", c.interpreter)
		return nil
	case err != nil:
		t.Logf("NOT TRIED: examples/workers/%s, because there is no %s", c.file, c.interpreter)
		return nil
	case c.interpreter == "go":
		return []string{goWorker(t, path)}
	}
	return []string{path, example(t, "workers/"+c.file)}
}

func goWorker(t *testing.T, goTool string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "worker")
	if out, err := exec.Command(goTool, "build", "-o", program, example(t, "workers/worker.go")).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// A workerCase is a message and what each client answers to it.
type workerCase struct {
	body    string
	attempt int
	verdict hooks.Verdict
	delay   time.Duration
	reason  string
}

var workerCases = []workerCase{
	{`{"sku":"A-1"}`, 1, hooks.Ack, 0, ""},
	{`{"sku":"Größe \\ 42 \u00df"}`, 1, hooks.Ack, 0, ""},
	{"{\n\t\"note\": \"\u2028 two lines\", \"sku\":\"A-2\"}\n", 1, hooks.Ack, 0, ""},
	{`{"note":"` + strings.Repeat("long ", 40_000) + `","sku":"A-3"}`, 1, hooks.Ack, 0, ""},
	{`{"sku":""}`, 1, hooks.Drop, 0, "the order has no sku"},
	{`{"sku":"SOON"}`, 1, hooks.RetryAfter, time.Second, "back in stock soon"},
	{`{"sku":"SOON"}`, 2, hooks.Ack, 0, ""},
	{"no order", 1, hooks.Retry, 0, ""},
	{"\xff\xfe", 1, hooks.Retry, 0, ""},
}

// tryWorker sends each case 8 times, with several in flight in each of two
// processes.
func tryWorker(t *testing.T, command []string) {
	t.Helper()
	h := &spec.Handler{Kind: spec.Worker, Dir: t.TempDir(), Timeout: time.Minute, KillGrace: time.Second, Processes: 2, Pipeline: 4}
	for _, word := range command {
		h.Command = append(h.Command, spec.Text{Value: word, Source: word})
	}
	hook, err := kinds.New(h, kinds.Options{Queue: "stock"})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.(hooks.Closer).Close()
	wantEndAtEndOfInput(t, command)
	if err := hook.(hooks.Prober).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 8 * len(workerCases) {
		c := workerCases[i%len(workerCases)]
		calls.Go(func() {
			m := hooks.Message{Queue: "stock", MessageID: fmt.Sprint(i), Attempt: c.attempt, Body: []byte(c.body)}
			o, err := hook.Handle(t.Context(), m)
			if err != nil || o.Verdict != c.verdict || o.Delay != c.delay || !strings.Contains(o.Reason, c.reason) {
				t.Errorf("%.40q, attempt %d: got %+v, %v, want %v %v %q", c.body, c.attempt, o, err, c.verdict, c.delay, c.reason)
			}
		})
	}
	calls.Wait()
}

// wantEndAtEndOfInput holds that a client goes when nothing is asked of it any
// more.
func wantEndAtEndOfInput(t *testing.T, command []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("at the end of its input: %v, printed %q", err, out)
	}
}

func TestWorkersExampleEndsEveryMessageAsItsWorkerSays(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	env := []string{"WORKER=sh", "WORKER_SCRIPT=workers/worker.sh"}
	b.MustRsctl(env, "-f", example(t, "workers.yaml"), "apply")
	bodies := map[string]string{"good": `{"sku":"A-1"}`, "soon": `{"sku":"SOON"}`, "bad": `{"sku":""}`, "hopeless": "no order"}
	for i := range 50 {
		bodies[fmt.Sprint("good ", i)] = `{"sku":"A-1"}`
	}
	for id, body := range bodies {
		b.Publish("", "stock", amqp.Publishing{MessageId: id, Body: []byte(body)})
	}
	r := b.MustRsctl(env, "-f", example(t, "workers.yaml"), "run", "--drain")
	if n := b.Ready("stock"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	dead := slices.Sorted(slices.Values(harness.IDs(b.TakeN("stock.dead", 2))))
	if want := []string{"bad", "hopeless"}; !slices.Equal(dead, want) {
		t.Errorf("stock.dead holds %q, want %q", dead, want)
	}
	for _, want := range []string{"back in stock soon", "the order has no sku", "not an order"} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("the log does not say %q:\n%s", want, r.Stderr)
		}
	}
}

// A worker that dies at start holds its queue and spends no attempt; the queue
// goes on when the worker is mended.
func TestWorkerThatDiesAtStartSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	file := harness.Spec(t, `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: stock
    type: classic
    max_attempts: 2
    dead_letter: stock.dead
    concurrency: 4
    handler: {worker: [./worker.sh]}
`, map[string]string{"worker.sh": "#!/bin/sh\necho no database >&2\nexit 1\n"})
	b.MustRsctl(nil, "-f", file, "apply")
	harness.Eventually(t, "check to see that the worker ends, within the second for which it looks", func() bool {
		r := b.Rsctl(nil, "-f", file, "check")
		return r.Code == 1 && strings.Contains(r.Stdout+r.Stderr, "no database")
	})
	for i := range 20 {
		b.Publish("", "stock", amqp.Publishing{MessageId: fmt.Sprint(i), Body: []byte(`{"sku":"A-1"}`)})
	}
	p := b.StartRsctl(nil, "-f", file, "run", "--drain", "--log-format", "text")
	harness.Eventually(t, "the queue is paused", func() bool {
		return strings.Contains(p.Output(), "queue paused, no attempt is spent") && strings.Contains(p.Output(), "no database")
	})
	good, err := os.ReadFile(example(t, "workers/worker.sh"))
	if err != nil {
		t.Fatal(err)
	}
	mended := filepath.Join(filepath.Dir(file), "mended")
	if err := os.WriteFile(mended, good, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mended, filepath.Join(filepath.Dir(file), "worker.sh")); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("run: exit code %d\n%s", code, p.Output())
	}
	if dead := b.Take("stock.dead"); len(dead) > 0 {
		t.Errorf("%d messages were dead-lettered:\n%s", len(dead), p.Output())
	}
	if strings.Contains(p.Output(), "handler failed") {
		t.Errorf("attempts were spent:\n%s", p.Output())
	}
}
