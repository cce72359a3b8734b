package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

// One message at a time: a crash costs every message a process holds on a
// quorum queue an attempt, healthy ones too.
const poisonSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: %s
    max_attempts: 3
    dead_letter: orders.dead
    concurrency: 1
    prefetch: 1
    handler: {exec: [./poison.sh]}
`

// poisonHook kills its rsctl until the file HEALED is there; then the first
// attempt fails and the next one succeeds.
const poisonHook = `#!/bin/sh
body=$(cat)
echo "$body attempt=$RSCTL_ATTEMPT redelivered=$RSCTL_REDELIVERED" >>"$RUNS"
[ "$body" = poison ] || exit 0
[ -e "$HEALED" ] || kill -9 $PPID
[ "$RSCTL_ATTEMPT" -gt 1 ] || exit 75
`

type poisonRun struct {
	b                  *harness.Broker
	file, runs, healed string
}

func newPoisonRun(t *testing.T, queueType string) poisonRun {
	t.Helper()
	dir := t.TempDir()
	p := poisonRun{
		b:      harness.NewBroker(t),
		file:   harness.Spec(t, fmt.Sprintf(poisonSpec, queueType), map[string]string{"poison.sh": poisonHook}),
		runs:   filepath.Join(dir, "runs"),
		healed: filepath.Join(dir, "healed"),
	}
	p.b.MustRsctl(nil, "-f", p.file, "apply")
	p.b.Publish("", "orders", bodied("poison"), bodied("healthy"))
	return p
}

func bodied(text string) amqp.Publishing {
	return amqp.Publishing{MessageId: text, Body: []byte(text), DeliveryMode: amqp.Persistent}
}

func (p poisonRun) env() []string { return []string{"RUNS=" + p.runs, "HEALED=" + p.healed} }

// crash runs rsctl until the poison message has killed it.
func (p poisonRun) crash(t *testing.T) {
	t.Helper()
	run := p.b.StartRsctl(p.env(), "-f", p.file, "run")
	if code := run.Wait(t); code != -1 {
		t.Fatalf("rsctl ended with code %d, not by a signal:\n%s", code, run.Output())
	}
}

// wantRuns compares the hook runs of one message, in their order.
func (p poisonRun) wantRuns(t *testing.T, body string, want ...string) {
	t.Helper()
	var got []string
	for _, line := range linesOf(t, p.runs) {
		if facts, ok := strings.CutPrefix(line, body+" "); ok {
			got = append(got, facts)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("handler runs of the %s message:\n got %q\nwant %q", body, got, want)
	}
}

func (p poisonRun) wantEmpty(t *testing.T) {
	t.Helper()
	if n := p.b.Ready("orders"); n != 0 {
		t.Errorf("orders still holds %d messages", n)
	}
}

func TestAPoisonMessageIsDeadLetteredOnAQuorumQueue(t *testing.T) {
	t.Parallel()
	p := newPoisonRun(t, "quorum")
	for range 3 {
		p.crash(t)
	}
	dead := p.b.TakeN("orders.dead", 1)
	p.b.MustRsctl(p.env(), "-f", p.file, "run", "--drain")

	if string(dead[0].Body) != "poison" {
		t.Errorf("dead-lettered is %q, want the poison message", dead[0].Body)
	}
	p.wantRuns(t, "poison", "attempt=1 redelivered=false", "attempt=2 redelivered=true", "attempt=3 redelivered=true")
	p.wantRuns(t, "healthy", "attempt=1 redelivered=false")
	p.wantEmpty(t)
	p.b.TakeN("orders.dead", 0)
}

func TestAPoisonMessageComesAgainUncountedOnAClassicQueue(t *testing.T) {
	t.Parallel()
	p := newPoisonRun(t, "classic")
	const again = "attempt=1 redelivered=true"
	for range 5 {
		p.crash(t)
	}
	p.wantRuns(t, "poison", "attempt=1 redelivered=false", again, again, again, again)
	if err := os.WriteFile(p.healed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := p.b.MustRsctl(p.env(), "-f", p.file, "run", "--drain", "--log-format", "text").Stderr

	p.wantRuns(t, "poison", "attempt=1 redelivered=false", again, again, again, again, again, "attempt=2 redelivered=false")
	p.wantRuns(t, "healthy", "attempt=1 redelivered=false")
	failed := linesWith(log, "handler failed")
	if strings.Count(failed, "\n") != 1 || !strings.Contains(failed, "redelivered=true") {
		t.Errorf("want one failure in the log, marked as redelivered:\n%s", log)
	}
	p.wantEmpty(t)
	p.b.TakeN("orders.dead", 0)
}

func TestExplainSaysWhereAPoisonMessageIsNotCounted(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	for queueType, want := range map[string][]string{
		"classic": {"a crash of rsctl", "is not counted", "a quorum queue is recommended"},
		"quorum":  {"the server counts a delivery that a crash of rsctl", "is dead-lettered too"},
	} {
		file := harness.Spec(t, fmt.Sprintf(poisonSpec, queueType), map[string]string{"poison.sh": poisonHook})
		out := strings.Join(strings.Fields(b.MustRsctl(nil, "-f", file, "explain").Stdout), " ")
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("explain of a %s queue does not say %q:\n%s", queueType, part, out)
			}
		}
	}
}
