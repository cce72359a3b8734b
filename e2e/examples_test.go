package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
	"github.com/rsctl/rsctl/pkg/spec"
)

func example(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(harness.Root(t), "examples", name)
}

func TestEveryExampleIsValidWithoutWarnings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(example(t, "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d examples, %v; want at least 5", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, problems := spec.Parse(data, spec.Options{File: filepath.Base(file), Dir: filepath.Dir(file)})
		if len(problems) > 0 {
			t.Errorf("%s", problems)
			continue
		}
		wantHandlerFiles(t, s)
	}
}

// wantHandlerFiles looks for the files of ours that commands name.
func wantHandlerFiles(t *testing.T, s *spec.Spec) {
	t.Helper()
	for _, q := range s.Queues {
		if q.Handler == nil {
			continue
		}
		for _, word := range q.Handler.Command {
			ours := strings.HasPrefix(word.Value, "handlers/") || strings.HasPrefix(word.Value, "workers/")
			if _, err := os.Stat(filepath.Join(s.Dir, word.Value)); ours && err != nil {
				t.Errorf("%s: queue %s: %v", s.File, q.Name, err)
			}
		}
	}
}

func TestEveryExampleThatRunsNowCanBeAppliedAndChecked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders.yaml", "payments.yaml", "webhook.yaml", "topology.yaml", "workers.yaml", "batches.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := harness.NewBroker(t)
			if r := b.Rsctl(nil, "-f", example(t, name), "check"); r.Code != 1 {
				t.Errorf("check before apply: exit code %d, want 1\n%s%s", r.Code, r.Stdout, r.Stderr)
			}
			b.MustRsctl(nil, "-f", example(t, name), "apply")
			b.MustRsctl(nil, "-f", example(t, name), "apply") // finds everything there
			b.MustRsctl([]string{"PATH=" + withPython(t)}, "-f", example(t, name), "check")
		})
	}
}

// withPython returns a PATH with a python3 on it, whatever the machine has:
// check looks whether the command is there, and whether a worker stays.
func withPython(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\nwhile read -r _; do :; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// An exampleRun says what one message sent to an example must lead to. On a
// quorum queue with a dead_letter the server also moves what is dropped there:
// the pair makes that queue the dead-letter route of the whole queue.
type exampleRun struct {
	queue, id, body string
	attempts        []string // what the handler noted, one entry per attempt
	dead            bool
}

func TestPaymentsExampleEndsEveryMessageAsItsHandlerSays(t *testing.T) {
	t.Parallel()
	runExample(t, "payments.yaml", nil, []exampleRun{
		{queue: "payments", id: "good", body: `{"card":"4242"}`, attempts: []string{"ack"}},
		{queue: "payments", id: "flaky", body: `{"card":"SLOW"}`, attempts: []string{"retry", "retry", "ack"}},
		{queue: "payments", id: "bad", body: `{"card":""}`, attempts: []string{"drop"}, dead: true},
		{queue: "payments", id: "unknown", body: `{"card":"UNKNOWN"}`, attempts: []string{"drop"}, dead: true},
		{queue: "payments", id: "hopeless", body: `{"card":"BROKEN"}`, attempts: slices.Repeat([]string{"retry"}, 5), dead: true},
		{queue: "refunds", id: "once", body: `{"card":"BROKEN"}`, attempts: []string{"retry"}, dead: true},
	})
}

func TestOrdersExampleEndsEveryMessageAsItsHandlersSay(t *testing.T) {
	t.Parallel()
	shell := []string{"CHARGE_WITH=sh", "CHARGE_SCRIPT=handlers/charge.sh"}
	runExample(t, "orders.yaml", shell, []exampleRun{
		{queue: "orders", id: "good", body: `{"sku":"A-1"}`, attempts: []string{"ack"}},
		{queue: "orders", id: "flaky", body: `{"sku":"RARE"}`, attempts: []string{"retry", "ack"}},
		{queue: "orders", id: "bad", body: `{"sku":""}`, attempts: []string{"drop"}},
		{queue: "orders", id: "hopeless", body: `{"sku":"SOLD-OUT"}`, attempts: slices.Repeat([]string{"retry"}, 3), dead: true},
		{queue: "payments", id: "paid", body: `{"card":"4242"}`, attempts: []string{"ack"}},
		{queue: "payments", id: "unpaid", body: `{"card":"BROKEN"}`, attempts: slices.Repeat([]string{"retry"}, 3), dead: true},
	})
}

// runExample publishes, runs the example until its queues are empty, and holds
// what the handlers noted and what lies in the dead-letter queues against runs.
func runExample(t *testing.T, name string, env []string, runs []exampleRun) {
	t.Helper()
	b := harness.NewBroker(t)
	journal := filepath.Join(t.TempDir(), "journal")
	env = append(env, "JOURNAL="+journal)
	b.MustRsctl(env, "-f", example(t, name), "apply")
	want, dead := map[string][]string{}, map[string][]string{}
	args := []string{"-f", example(t, name), "run", "--drain"}
	for _, r := range runs {
		b.Publish("", r.queue, amqp.Publishing{MessageId: r.id, Body: []byte(r.body)})
		want[r.id] = r.attempts
		if dead[r.queue] == nil {
			dead[r.queue] = []string{}
			args = append(args, "--queue", r.queue)
		}
		if r.dead {
			dead[r.queue] = append(dead[r.queue], r.id)
		}
	}
	b.MustRsctl(env, args...)

	got := map[string][]string{}
	for _, line := range linesOf(t, journal) {
		fields := strings.Fields(line) // queue, id, attempt, outcome
		got[fields[1]] = append(got[fields[1]], fields[3])
	}
	for id, attempts := range want {
		if !slices.Equal(got[id], attempts) {
			t.Errorf("%s: the handler answered %q, want %q", id, got[id], attempts)
		}
	}
	for queue, ids := range dead {
		got := slices.Sorted(slices.Values(harness.IDs(b.TakeN(queue+".dead", len(ids)))))
		if slices.Sort(ids); !slices.Equal(got, ids) {
			t.Errorf("%s.dead holds %q, want %q", queue, got, ids)
		}
	}
}

func TestWebhookExampleEndsEveryMessageAsTheStatusSays(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("RSCTL-Message-Id")
		mu.Lock()
		calls[id]++
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(map[string]int{
			"good": http.StatusNoContent, "seen before": http.StatusConflict,
			"locked": http.StatusLocked, "bad": http.StatusUnprocessableEntity,
		}[id])
	}))
	t.Cleanup(server.Close)

	b := harness.NewBroker(t)
	env := []string{"WEBHOOK_URL=" + server.URL + "/events", "WEBHOOK_TOKEN=s3cret"}
	b.MustRsctl(env, "-f", example(t, "webhook.yaml"), "apply")
	for _, id := range []string{"good", "seen before", "locked", "bad"} {
		b.Publish("events", "customer.eu.changed", amqp.Publishing{MessageId: id, Body: []byte("{}")})
	}
	r := b.MustRsctl(env, "-f", example(t, "webhook.yaml"), "run", "--drain")

	want := map[string]int{"good": 1, "seen before": 1, "locked": 4, "bad": 1}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range want {
		if calls[id] != n {
			t.Errorf("%s: the endpoint was called %d times, want %d", id, calls[id], n)
		}
	}
	if dead := harness.IDs(b.TakeN("webhook.dead", 1)); dead[0] != "locked" {
		t.Errorf("webhook.dead holds %q, want the locked one", dead)
	}
	if strings.Contains(r.Stdout+r.Stderr, "s3cret") {
		t.Errorf("the token was printed:\n%s%s", r.Stdout, r.Stderr)
	}
}
