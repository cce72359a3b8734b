package e2e

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const busySpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: busy
    type: classic
    concurrency: %d
    handler: {exec: [./busy.sh]}
`

// busyHook writes 20 MB and then keeps a CPU busy until 8 seconds are over: the
// server gives a connection up after two intervals without a frame.
const busyHook = `#!/bin/sh
echo "$RSCTL_MESSAGE_ID" >>"$RUNS"
end=$(($(date +%s) + 8))
yes "a line of output that nobody reads" | head -c 20000000
while [ "$(date +%s)" -lt "$end" ]; do
	i=0
	while [ $i -lt 100000 ]; do i=$((i + 1)); done
done
`

// Nothing but heartbeats is sent while the hooks run.
func TestBusyHooksDoNotStopTheHeartbeat(t *testing.T) {
	t.Parallel()
	cpus := runtime.NumCPU()
	b := harness.NewBroker(t)
	b.URL += "?heartbeat=2"
	file := harness.Spec(t, fmt.Sprintf(busySpec, cpus), map[string]string{"busy.sh": busyHook})
	runs := filepath.Join(t.TempDir(), "runs")
	b.MustRsctl(nil, "-f", file, "apply")
	messages := numbered(cpus)
	b.Publish("", "busy", messages...)

	log := b.MustRsctl([]string{"RUNS=" + runs}, "-f", file, "run", "--drain", "--log-format", "text", "--log-level", "debug").Stderr

	if lost := linesWith(log, "no connection to the broker"); lost != "" {
		t.Errorf("the connection was cut:\n%s", lost)
	}
	var want []string
	for _, m := range messages {
		want = append(want, m.MessageId)
	}
	if got := slices.Sorted(slices.Values(linesOf(t, runs))); !slices.Equal(got, want) {
		t.Errorf("handlers ran for %q, want each message once: %q", got, want)
	}
	if n := strings.Count(log, "msg=acked"); n != cpus {
		t.Errorf("%d acks, want %d", n, cpus)
	}
	if n := b.Ready("busy"); n != 0 {
		t.Errorf("busy still holds %d messages", n)
	}
}

// linesWith returns the lines of a text that contain a part.
func linesWith(text, part string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
