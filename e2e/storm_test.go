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
	b := harness.NewBroker(t)
	file := harness.Spec(t, stormSpec, map[string]string{"hook.sh": stormHook})
	b.MustRsctl(nil, "-f", file, "apply")
	s := &storm{Broker: b, t: t, file: file, runs: filepath.Join(t.TempDir(), "runs")}
	for queue, span := range map[string]time.Duration{"classic": 10 * time.Second, "quorum": 4 * time.Second} {
		b.Publish("", queue, numbered(stormMessages)...)
		s.blow(queue, span)
	}
}

const stormMessages = 50

// A storm is a run of stormHook.
type storm struct {
	*harness.Broker
	t          *testing.T
	file, runs string
}

func (s *storm) seen(queue string) []string { return linesOf(s.t, s.runs+"."+queue) }

// blow runs one queue for a while and holds the number of hook runs, which is
// 100 in 10 s for each message at most.
func (s *storm) blow(queue string, span time.Duration) {
	s.t.Helper()
	run := s.StartRsctl([]string{"RUNS=" + s.runs}, "-f", s.file, "run", "--queue", queue, "--log-level", "error", "--listen", "")
	harness.Eventually(s.t, "the first message to be tried", func() bool { return len(s.seen(queue)) > 0 })
	start := time.Now()
	if queue == "classic" {
		harness.Eventually(s.t, "half of the time to pass", func() bool { return time.Since(start) > span/2 })
		s.wantGoodMessageSoon(queue)
	}
	harness.Eventually(s.t, "the time to pass", func() bool { return time.Since(start) > span })
	harness.Eventually(s.t, "some handler runs", func() bool { return len(s.seen(queue)) >= stormMessages })
	n, took := len(s.seen(queue)), time.Since(start)
	run.Kill()
	s.t.Logf("%s: %d handler runs in %v", queue, n, took.Round(time.Millisecond))
	if limit := stormMessages * 10 * (int(took.Seconds()) + 1); n >= limit {
		s.t.Errorf("%s: %d handler runs in %v, want fewer than %d", queue, n, took, limit)
	}
}

// wantGoodMessageSoon sends a message that succeeds among those that fail. They
// all may come before it, and come back once more while it is on its way.
func (s *storm) wantGoodMessageSoon(queue string) {
	s.t.Helper()
	before, handled := len(s.seen(queue)), -1
	s.Publish("", queue, amqp.Publishing{MessageId: "good"})
	harness.Eventually(s.t, "the good message", func() bool {
		handled = slices.Index(s.seen(queue), "good")
		return handled >= 0
	})
	if runs := handled - before; runs > 3*stormMessages {
		s.t.Errorf("the good message was handled after %d runs of the %d failing ones", runs, stormMessages)
	}
}
