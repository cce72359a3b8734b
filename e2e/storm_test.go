package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const stormSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
defaults: {max_attempts: 1000}
queues:
  - {name: classic, type: classic, dead_letter: classic.dead, handler: {exec: [./hook.sh]}}
  - {name: quorum, type: quorum, dead_letter: quorum.dead, handler: {exec: [./hook.sh]}}
`

// stormHook fails at once for all but the good message.
const stormHook = `#!/bin/sh
echo "$RSCTL_MESSAGE_ID" >>"$RUNS.$RSCTL_QUEUE"
[ "$RSCTL_MESSAGE_ID" = good ]
`

// A retry copy goes to the back of a classic queue, so that others get their
// turn. A quorum queue delivers what was requeued before anything else, and a
// message behind it waits; only the rate is bounded there.
func TestMessagesThatAlwaysFailDoNotStormTheBroker(t *testing.T) {
	t.Parallel()
	const messages, span = 50, 10 * time.Second
	b := harness.NewBroker(t)
	file := harness.Spec(t, stormSpec, map[string]string{"hook.sh": stormHook})
	runs := filepath.Join(t.TempDir(), "runs")
	seen := func(queue string) []string { return linesOf(t, runs+"."+queue) }
	b.MustRsctl(nil, "-f", file, "apply")
	queues := []string{"classic", "quorum"}
	for _, q := range queues {
		b.Publish("", q, numbered(messages)...)
	}
	run := b.StartRsctl([]string{"RUNS=" + runs}, "-f", file, "run", "--log-level", "error")
	harness.Eventually(t, "the first message to be tried", func() bool { return len(seen("classic"))*len(seen("quorum")) > 0 })
	start := time.Now()
	harness.Eventually(t, "half of the time to pass", func() bool { return time.Since(start) > span/2 })
	published := time.Now()
	b.Publish("", "classic", amqp.Publishing{MessageId: "good"})
	harness.Eventually(t, "the good message", func() bool { return slices.Contains(seen("classic"), "good") })
	if took := time.Since(published); took > 2*time.Second {
		t.Errorf("the good message was handled after %v behind %d failing ones, want 2s at most", took, messages)
	} else {
		t.Logf("the good message was handled after %v", took.Round(time.Millisecond))
	}
	harness.Eventually(t, "the time to pass", func() bool { return time.Since(start) > span })
	for _, q := range queues {
		n := len(seen(q))
		t.Logf("%s: %d hook runs in %v", q, n, span)
		if n >= messages*100 || n < messages {
			t.Errorf("%s: %d hook runs in %v, want fewer than %d, and some", q, n, span, messages*100)
		}
	}
	run.Kill()
}
