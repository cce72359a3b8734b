package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A traceCollector takes traces as OTLP over HTTP.
type traceCollector struct {
	*httptest.Server

	mu       sync.Mutex
	services []string
	spans    []*otlp.Span
}

func newTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request otlp.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "hush" {
			t.Errorf("%s with %v: %v", r.URL.Path, r.Header, err)
		}
		c.add(&request)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *traceCollector) add(r *otlp.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		c.services = append(c.services, attributeOf(resource.Resource.Attributes, "service.name"))
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *traceCollector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spans)
}

func attributeOf(all []*common.KeyValue, key string) string {
	i := slices.IndexFunc(all, func(kv *common.KeyValue) bool { return kv.Key == key })
	if i < 0 {
		return ""
	}
	if _, isInt := all[i].Value.Value.(*common.AnyValue_IntValue); isInt {
		return fmt.Sprint(all[i].Value.GetIntValue())
	}
	return all[i].Value.GetStringValue()
}

// tracedQueue is a queue whose handler writes the trace down that it is given,
// and asks for another attempt.
type tracedQueue struct{ dir, name string }

func newTracedQueue(t *testing.T) tracedQueue {
	t.Helper()
	q := tracedQueue{t.TempDir(), "cli-traced-" + strings.ToLower(rand.Text()[:8])}
	spec := fmt.Sprintf("version: 1\nbroker: {url: %q}\ndeclare_topology: true\nqueues:\n"+
		"  - {name: %s, type: classic, max_attempts: 2, dead_letter: %[2]s.dead, handler: {exec: [sh, -c, 'echo $RSCTL_ATTEMPT $TRACEPARENT >>seen; exit 75']}}\n", brokerURL(t), q.name)
	if err := os.WriteFile(filepath.Join(q.dir, "queues.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteQueue(t, q.name); deleteQueue(t, q.name+".dead") })
	q.mustRun(t, nil, "apply", "--timeout", patience.String())
	return q
}

// command is a command line of rsctl, with more environment.
func (q tracedQueue) command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "rsctl", append([]string{"-f", filepath.Join(q.dir, "queues.yaml")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// mustRun runs rsctl to its end and returns its log.
func (q tracedQueue) mustRun(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, err := q.command(t, env, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("rsctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (q tracedQueue) seen(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(q.dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestTraces_EveryAttemptIsASpan(t *testing.T) {
	t.Parallel()
	const traceID, parentID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const parent = "00-" + traceID + "-" + parentID + "-01"
	c, q := newTraceCollector(t), newTracedQueue(t)
	q.mustRun(t, nil, "publish", q.name, "--body", "x", "--id", "m-1", "--header", "traceparent="+parent, "--timeout", patience.String())
	run := q.command(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=hush", "OTEL_SERVICE_NAME=shop", "OTEL_BSP_SCHEDULE_DELAY=10",
	}, "run", "--listen", "", "--log-level", "debug")
	var log bytes.Buffer
	run.Stderr = &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	if !poll(func() bool { return c.count() == 2 }) {
		t.Errorf("%d spans came", c.count())
	}
	_ = run.Process.Signal(syscall.SIGTERM)
	if err := run.Wait(); err != nil || strings.Contains(log.String(), "hush") || strings.Contains(log.String(), "traces are not exported") {
		t.Errorf("%v; log:\n%s", err, &log)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var told []string
	for _, s := range c.spans {
		attempt := attributeOf(s.Attributes, "rsctl.attempt")
		told = append(told, attempt+" 00-"+traceID+"-"+hex.EncodeToString(s.SpanId)+"-01")
		if hex.EncodeToString(s.TraceId) != traceID || hex.EncodeToString(s.ParentSpanId) != parentID || s.Kind != otlp.Span_SPAN_KIND_CONSUMER ||
			attributeOf(s.Attributes, "messaging.message.id") != "m-1" || attributeOf(s.Attributes, "rsctl.outcome") != "retry" {
			t.Errorf("span %v", s)
		}
	}
	if seen := q.seen(t); len(told) != 2 || !slices.Equal(seen, told) {
		t.Errorf("the spans are %q, and the handler was told %q", told, seen)
	}
	if slices.ContainsFunc(c.services, func(s string) bool { return s != "shop" }) {
		t.Errorf("services %q", c.services)
	}
	if got := headerOfDead(t, q.name+".dead"); got != parent {
		t.Errorf("the dead letter carries %v, want what was published", got)
	}
}

// headerOfDead takes a dead letter and returns its traceparent.
func headerOfDead(t *testing.T, queue string) (header any) {
	t.Helper()
	onQueue(t, func(ch *amqp.Channel) error {
		d, ok, err := ch.Get(queue, true)
		if err == nil && !ok {
			t.Errorf("%s is empty", queue)
		}
		header = d.Headers["traceparent"]
		return err
	})
	return header
}

// Neither a collector that is away nor one that never answers may cost a
// message anything.
func TestTraces_CollectorThatDoesNotWorkStopsNoMessage(t *testing.T) {
	t.Parallel()
	const messages = 20
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	for name, endpoint := range map[string]string{
		"away":   "http://user:hush@127.0.0.1:1",
		"silent": strings.Replace(silent.URL, "http://", "http://user:hush@", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newTracedQueue(t)
			q.mustRun(t, nil, "publish", q.name, "--body", "x", "--count", fmt.Sprint(messages), "--timeout", patience.String())
			log := q.mustRun(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_BSP_SCHEDULE_DELAY=1"}, "run", "--drain", "--listen", "", "--log-format", "json")
			if strings.Count(log, "traces are not exported") != 1 || strings.Contains(log, "hush") {
				t.Errorf("want one line about the traces, without secrets:\n%s", log)
			}
			if seen := q.seen(t); len(seen) != 2*messages {
				t.Errorf("%d attempts of %d messages", len(seen), messages)
			}
		})
	}
}
