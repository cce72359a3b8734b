package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const commandAwaySpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - {name: orders, type: classic, max_attempts: 3, dead_letter: orders.dead, handler: {exec: [./job.sh]}}
`

// The handler puts itself away in the middle of the work, as a deployment that
// goes wrong does.
const commandAwayHook = `#!/bin/sh
echo "$RSCTL_MESSAGE_ID attempt=$RSCTL_ATTEMPT" >>"$RUNS"
[ "$RSCTL_MESSAGE_ID" != m-0050 ] || mv ./job.sh ./away.sh
`

func TestACommandThatIsAwayForAWhileSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	const messages = 200
	b := harness.NewBroker(t)
	file := harness.Spec(t, commandAwaySpec, map[string]string{"job.sh": commandAwayHook})
	dir, runs := filepath.Dir(file), filepath.Join(t.TempDir(), "runs")
	b.MustRsctl(nil, "-f", file, "apply")
	b.Publish("", "orders", numbered(messages)...)
	run := b.StartRsctl([]string{"RUNS=" + runs}, "-f", file, "run", "--log-format", "text")
	harness.Eventually(t, "several probes of the missing command", func() bool {
		return strings.Count(run.Output(), "handler still unavailable") >= 3
	})
	if log := run.Output(); !strings.Contains(log, "job.sh: no such file") {
		t.Errorf("the log does not say what is missing:\n%s", log)
	}
	if err := os.Rename(filepath.Join(dir, "away.sh"), filepath.Join(dir, "job.sh")); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "every message to be handled", func() bool { return len(linesOf(t, runs)) >= messages })
	stop(t, run)

	var want []string
	for _, m := range numbered(messages) {
		want = append(want, m.MessageId+" attempt=1")
	}
	got := linesOf(t, runs)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the outage spent attempts or lost messages: %d runs of %d messages\n%q", len(got), messages, got)
	}
	b.TakeN("orders.dead", 0)
	if n := b.Ready("orders"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}
