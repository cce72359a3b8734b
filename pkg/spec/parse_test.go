package spec

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// Parsing must stay possible without a network, a clock or files of its own.
// The schema library imports os and net for its own loaders, so that the fence
// for those two is around this package's own imports.
func TestImports(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"net/http":                       "parsing does no I/O",
		"os/exec":                        "hooks run in package hooks",
		"crypto/tls":                     "connections belong to topology/broker and runtime",
		"github.com/rabbitmq/amqp091-go": "AMQP belongs to topology/broker and runtime",
	}
	for _, dep := range goList(t, `{{join .Deps "\n"}}`) {
		if why, bad := banned[dep]; bad {
			t.Errorf("spec depends on %s: %s", dep, why)
		}
	}
	own := map[string]string{
		"os":      "environment and files come through Options",
		"net":     "parsing does no I/O",
		"log":     "problems are values; who calls prints them",
		"context": "nothing here waits",
	}
	for _, dep := range goList(t, `{{join .Imports "\n"}}`) {
		if why, bad := own[dep]; bad {
			t.Errorf("spec imports %s: %s", dep, why)
		}
	}
}

// The package may speak of durations, but must not read the clock.
func TestNoClock(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range []string{"time.Now", "time.Since", "time.Sleep", "time.After"} {
			if bytes.Contains(readFile(t, file), []byte(call)) {
				t.Errorf("%s calls %s: the same bytes must always give the same answer", file, call)
			}
		}
	}
}

func goList(t *testing.T, format string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", format, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

const base = `version: 1
declare_topology: true
exchanges:
  - {name: events, type: topic}
queues:
  - name: orders
    type: quorum
    max_attempts: 5
    dead_letter: orders.dead
    bindings: [{exchange: events, routing_key: "order.*"}]
    handler:
      exec: [./reserve.sh] # reserves stock
`

func TestDefaultsOfEveryKey(t *testing.T) {
	t.Parallel()
	s := mustParse(t, base)
	want := Queue{
		Name: "orders", Type: Quorum, Pos: Pos{6, 11}, Durable: true,
		Bindings:    []Binding{{Exchange: "events", RoutingKey: "order.*", Pos: Pos{10, 16}}},
		MaxAttempts: 5, DeadLetter: "orders.dead", RetryOriginal: RejectOriginal,
		Prefetch: 2, Concurrency: 1,
		Handler: &Handler{
			Kind: Exec, Pos: Pos{12, 7}, Timeout: 30 * time.Second,
			Command: []Text{{"./reserve.sh", "./reserve.sh"}}, Dir: "/spec",
			KillGrace: 5 * time.Second, OnUnavailable: "pause",
		},
	}
	got := s.Queues[0]
	got.Keys = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("queue:\n got %+v\nwant %+v", got, want)
	}
	if want := (Exchange{Name: "events", Type: "topic", Durable: true, Pos: Pos{4, 12}}); !reflect.DeepEqual(s.Exchanges[0], want) {
		t.Errorf("exchange:\n got %+v\nwant %+v", s.Exchanges[0], want)
	}
	if got := s.Broker.URL; got != (Text{"amqp://guest:guest@localhost:5672/", "${AMQP_URL:-amqp://guest:***@localhost:5672/}"}) {
		t.Errorf("broker URL without broker.url: %#v", got)
	}
	if s.File != "queues.yaml" || s.Dir != "/spec" || !s.DeclareTopology {
		t.Errorf("file %q, dir %q, declare_topology %t", s.File, s.Dir, s.DeclareTopology)
	}
	if q := s.Queue("orders"); q != &s.Queues[0] || s.Queue("other") != nil {
		t.Errorf("Queue(orders) = %p, want the queue itself; Queue(other) = %p", q, s.Queue("other"))
	}
}

func TestEverythingReachesTheSpec(t *testing.T) {
	t.Parallel()
	s := mustParse(t, string(readFile(t, "testdata/ok/everything.yaml")))
	q := s.Queue("orders")
	three, yes, rejected, key := uint8(3), true, "rejected", "orders"
	want := map[string]any{
		"dead letter exchange": &rejected,
		"dead letter key":      &key,
		"arguments":            map[string]any{"x-max-length": int64(100000), "x-overflow": "reject-publish"},
		"retry publisher":      &RetryPublisher{Exchange: "retries", Persistent: &yes, Priority: &three},
		"delay":                &Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}, Pos: q.Delay.Pos},
		"backoff":              &Backoff{Initial: time.Second, Factor: 2, Max: 5 * time.Minute, Jitter: 0.1},
		"ordered by":           &OrderedBy{By: "header", Header: "amqp-partition-key"},
		"batch":                &Batch{Size: 32, Wait: 50 * time.Millisecond},
		"rate":                 50.0,
		"breaker":              &Breaker{Failures: 10, Cooldown: time.Minute},
		"consumer":             Consumer{Priority: 5, HasPriority: true, Tag: "stock-1"},
		"exit codes": []CodeRule{
			{3, 3, Outcome{Kind: "drop"}}, {10, 19, Outcome{Kind: "retry"}}, {20, 20, Outcome{"retry_after", 30 * time.Second}},
		},
		"env": []EnvVar{{"LOG_LEVEL", Text{"debug", "debug"}}, {"API_TOKEN", Text{"abc", "***"}}},
	}
	got := map[string]any{
		"dead letter exchange": q.DeadLetterExchange, "dead letter key": q.DeadLetterRoutingKey,
		"arguments": q.Arguments, "retry publisher": q.RetryPublisher, "delay": q.Delay, "backoff": q.Backoff,
		"ordered by": q.OrderedBy, "batch": q.Batch, "rate": q.Rate, "breaker": q.Breaker, "consumer": q.Consumer,
		"exit codes": q.Handler.ExitCodes, "env": q.Handler.Env,
	}
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got[name], want[name])
		}
	}
	if q.Handler.Dir != "/spec/jobs" || s.Broker.TLS.CAFile != "/spec/ca.pem" {
		t.Errorf("paths: dir %q, ca_file %q", q.Handler.Dir, s.Broker.TLS.CAFile)
	}
	h := s.Queue("payments").Handler
	if want := []Text{{"a", "***"}, {"from-file", "${file:secret.txt}"}}; !reflect.DeepEqual(h.Secrets, want) || *h.Secret != want[0] {
		t.Errorf("secrets: %#v", h.Secrets)
	}
	if h.MaxRetryAfter != 24*time.Hour || !h.NoKeepAlive || !h.Reply || h.Statuses[1].Outcome.Delay != time.Minute {
		t.Errorf("http handler: %+v", h)
	}
	if w := s.Queue("mail"); w.Concurrency != 4 || w.Handler.Processes != 2 || w.Handler.Pipeline != 8 || w.Delay.Max != time.Minute {
		t.Errorf("worker queue: %+v", w)
	}
}

func TestByteOrderMarkAndLineEndsChangeNothing(t *testing.T) {
	t.Parallel()
	want := mustParse(t, base)
	windows := "\ufeff" + strings.ReplaceAll(base, "\n", "\r\n")
	if got := mustParse(t, windows); !reflect.DeepEqual(got, want) {
		t.Errorf("UTF-8 with BOM and CRLF:\n got %+v\nwant %+v", got, want)
	}
	for _, order := range []int{0, 1} {
		var b []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + base)) {
			pair := []byte{byte(u), byte(u >> 8)}
			b = append(b, pair[order], pair[1-order])
		}
		_, problems := Parse(b, testOptions("q.yaml"))
		if len(problems) != 1 || !strings.Contains(problems[0].Message, "UTF-16") {
			t.Errorf("UTF-16 file: %s", problems)
		}
	}
	if _, problems := Parse([]byte("version: 1\nqueues: [\xff]\n"), testOptions("q.yaml")); len(problems) != 1 || problems[0].Pos != (Pos{2, 10}) {
		t.Errorf("file that is not UTF-8: %s", problems)
	}
}

func TestATabAfterAValueIsNoIndentation(t *testing.T) {
	t.Parallel()
	mustParse(t, "version: 1\nqueues:\n  - name: q\t# x\n    type: classic\n")
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `version: 1
declare_topology: true
x-base: &base {type: classic, max_attempts: 5, dead_letter: dead, arguments: &args {x-max-length: 100, nested: {a: [1]}}}
x-quick: &quick {max_attempts: 1, prefetch: 50}
queues:
  - {<<: *base, name: a}
  - {<<: *base, name: b, max_attempts: 2}
  - {<<: [*quick, *base], name: c}
  - {name: d, type: classic, arguments: *args}
`)
	for i, want := range []int{5, 2, 1, 0} {
		if got := s.Queues[i].MaxAttempts; got != want {
			t.Errorf("queue %s: max_attempts %d, want %d", s.Queues[i].Name, got, want)
		}
	}
	if got := s.Queue("c").Prefetch; got != 50 {
		t.Errorf("the first mapping of a list of merges gives prefetch %d, want 50", got)
	}
	s.Queues[0].Arguments["x-max-length"] = int64(1)
	s.Queues[0].Arguments["nested"].(map[string]any)["a"].([]any)[0] = "changed"
	want := map[string]any{"x-max-length": int64(100), "nested": map[string]any{"a": []any{int64(1)}}}
	for _, name := range []string{"b", "c", "d"} {
		if got := s.Queue(name).Arguments; !reflect.DeepEqual(got, want) {
			t.Errorf("changing the arguments of a changed those of %s: %v", name, got)
		}
	}
}

func TestDefaultsAreTakenWholeAndNotShared(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `version: 1
defaults: {type: classic, prefetch: 7, arguments: {x-max-length: 1, x-expires: 2}}
queues:
  - {name: a}
  - {name: b, prefetch: 9, arguments: {x-max-length: 3}}
  - {name: c}
`)
	a, b, c := s.Queue("a"), s.Queue("b"), s.Queue("c")
	if a.Prefetch != 7 || b.Prefetch != 9 || len(b.Arguments) != 1 {
		t.Errorf("a: prefetch %d; b: prefetch %d, arguments %v", a.Prefetch, b.Prefetch, b.Arguments)
	}
	if a.At("prefetch") != a.Pos || b.At("prefetch") != (Pos{5, 25}) || b.At("arguments.x-max-length") != (Pos{5, 54}) {
		t.Errorf("positions: defaulted %v, written %v, nested %v", a.At("prefetch"), b.At("prefetch"), b.At("arguments.x-max-length"))
	}
	a.Arguments["x-max-length"] = int64(9)
	if c.Arguments["x-max-length"] != int64(1) {
		t.Error("two queues share the arguments of defaults")
	}
}

func TestAliasesCannotMakeAFileLarge(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nx-0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "x-%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	b.WriteString("queues: [{name: q, type: classic, arguments: {x: *l11}}]\n")
	deep := "version: 1\nqueues: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for name, text := range map[string]string{"too large": b.String(), "levels deep": deep} {
		_, problems := Parse([]byte(text), testOptions("q.yaml"))
		if len(problems) != 1 || !strings.Contains(problems[0].Message, name) {
			t.Errorf("want one problem that says %q, got:\n%s", name, problems)
		}
	}
}

func TestArgumentsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `version: 1
queues:
  - name: q
    type: classic
    arguments:
      big: 5368709120
      above32: 2147483648
      largest: 9223372036854775807
      negative: -5
      float: 1.5
      bool: true
      text: "5"
      block: |
        two
        lines
      list: [1, a, false, 2.0]
      map: {k: {deep: 1}}
      number: ${NUMBER}
      flag: ${FLAG}
      word: ${KIND}
      quoted: "${NUMBER}"
      none: {}
`)
	want := map[string]any{
		"big": int64(5368709120), "above32": int64(2147483648), "largest": int64(9223372036854775807),
		"negative": int64(-5), "float": 1.5, "bool": true, "text": "5", "block": "two\nlines\n",
		"list": []any{int64(1), "a", false, 2.0}, "map": map[string]any{"k": map[string]any{"deep": int64(1)}},
		"number": int64(42), "flag": true, "word": "quorum", "quoted": "42", "none": map[string]any{},
	}
	if got := s.Queues[0].Arguments; !reflect.DeepEqual(got, want) {
		t.Errorf("arguments:\n got %#v\nwant %#v", got, want)
	}
}

func TestNamesOfTheBrokersOwnExchanges(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `version: 1
exchanges: [{name: amq.mine, external: true}]
queues:
  - name: amqp.orders
    type: classic
    bindings: [{exchange: amq.topic, routing_key: "#"}, {exchange: amq.mine}]
`)
	if got := s.Queues[0].Bindings; len(got) != 2 || got[0].Exchange != "amq.topic" || got[1].Exchange != "amq.mine" {
		t.Errorf("bindings: %+v", got)
	}
}

func TestADerivedNameMayHave255Bytes(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{"dlx_ttl", "plugin_dme"} {
		mustParse(t, "version: 1\nqueues: [{name: "+strings.Repeat("n", 249)+", type: classic, delay: "+delay+"}]\n")
	}
}

// A delayed exchange routes by queue name, so that queues may share one that
// the spec names; the same exchange may also be declared or external.
func TestQueuesMayShareANamedDelayedExchange(t *testing.T) {
	t.Parallel()
	mustParse(t, `version: 1
exchanges: [{name: later, type: x-delayed-message, arguments: {x-delayed-type: direct}}]
queues:
  - {name: a, type: classic, delay: {strategy: plugin_dme, exchange: later}}
  - {name: b, type: classic, delay: {strategy: plugin_dme, exchange: later}}
  - {name: c, type: classic, delay: {strategy: plugin_dme, exchange: other}}
  - {name: d, type: classic, delay: {strategy: plugin_dme, exchange: other}}
`)
}

func TestPrefetchDefaultsToTwiceTheConcurrency(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]int{
		"":                                   2,
		", concurrency: 10":                  20,
		", concurrency: 60000":               65535,
		", concurrency: 2147483647":          65535,
		", batch: {size: 32}":                64,
		", concurrency: 4, prefetch: 9":      9,
		", concurrency: ${WORKERS}":          14,
		", prefetch: ${PREFETCH:-20}":        20,
		", prefetch: ${WORKERS}0":            70,
		", concurrency: 2, batch: {size: 5}": 20,
	} {
		block := "\n    " + strings.ReplaceAll(strings.TrimPrefix(keys, ", "), ", ", "\n    ")
		if got := mustParse(t, "version: 1\nqueues:\n  - name: q\n    type: classic"+block+"\n").Queues[0].Prefetch; got != want {
			t.Errorf("%q: prefetch %d, want %d", keys, got, want)
		}
	}
}
