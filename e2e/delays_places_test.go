package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

// A place is a delay strategy on one type of queue.
type place struct {
	queue     string // its name says which
	strategy  string
	queueType string
	delay     string // of the spec; %[1]s is a short delay, %[2]s a long one
	// uncounted places bring back the original: the server counts, no header does.
	uncounted bool
	// blocks means that a short delay waits behind a long one.
	blocks bool
	// fixed means that the server waits as the spec says, not as the hook asks.
	fixed bool
}

var allPlaces = []place{
	{queue: "timer", strategy: "timer", queueType: "classic", delay: "timer"},
	{queue: "hold-classic", strategy: "hold", queueType: "classic", delay: "hold"},
	{queue: "hold-quorum", strategy: "hold", queueType: "quorum", delay: "hold", uncounted: true},
	{queue: "ttl-classic", strategy: "dlx_ttl", queueType: "classic", delay: "dlx_ttl", blocks: true},
	{queue: "ttl-quorum", strategy: "dlx_ttl", queueType: "quorum", delay: "dlx_ttl", blocks: true},
	{queue: "named-classic", strategy: "dlx_ttl", queueType: "classic", delay: "{strategy: dlx_ttl, waiting_queue: waits}", blocks: true},
	{queue: "tiers-classic", strategy: "dlx_ttl", queueType: "classic", delay: "{strategy: dlx_ttl, tiers: [%[1]s, %[2]s]}"},
	{queue: "tiers-quorum", strategy: "dlx_ttl", queueType: "quorum", delay: "{strategy: dlx_ttl, tiers: [%[1]s, %[2]s]}"},
	{queue: "levels-classic", strategy: "levels", queueType: "classic", delay: "levels"},
	{queue: "levels-quorum", strategy: "levels", queueType: "quorum", delay: "levels"},
	{queue: "plugin-classic", strategy: "plugin_dme", queueType: "classic", delay: "plugin_dme"},
	{queue: "plugin-quorum", strategy: "plugin_dme", queueType: "quorum", delay: "{strategy: plugin_dme, exchange: later}"},
	{queue: "native", strategy: "native", queueType: "quorum", delay: "{strategy: native, min: %[1]s, max: %[1]s}", uncounted: true, fixed: true},
}

// places returns those that the broker under test offers.
func places(b *harness.Broker) []place {
	plugin, native := b.HasExchangeType("x-delayed-message"), b.AtLeast(4, 3)
	var out []place
	for _, p := range allPlaces {
		if p.strategy == "plugin_dme" && !plugin || p.strategy == "native" && !native {
			continue
		}
		out = append(out, p)
	}
	return out
}

// in returns the queue of the spec for a place, with more keys.
func (p place) in(short, long, more string) string {
	delay := p.delay
	if strings.Contains(delay, "%") {
		delay = fmt.Sprintf(delay+"%.0[2]s", short, long)
	}
	return fmt.Sprintf("  - name: %s\n    type: %s\n    delay: %s\n%s", p.queue, p.queueType, delay, more)
}

// waitingQueue names the queue that holds p's copies for a tier; "" when there
// is none of its own.
func (p place) waitingQueue(tier string) string {
	switch {
	case p.strategy != "dlx_ttl":
		return ""
	case strings.Contains(p.delay, "waiting_queue"):
		return "waits"
	case strings.Contains(p.delay, "tiers"):
		return p.queue + ".retry." + tier
	}
	return p.queue + ".retry"
}

// placesSpec is a spec with a queue for each place.
func placesSpec(list []place, short, long, more string) string {
	var b strings.Builder
	b.WriteString("version: 1\nbroker: {url: \"${AMQP_URL}\"}\ndeclare_topology: true\n")
	b.WriteString("exchanges:\n  - {name: shop, type: topic}\nqueues:\n")
	for _, p := range list {
		b.WriteString(p.in(short, long, strings.ReplaceAll(more, "QUEUE", p.queue)))
	}
	return b.String()
}

// scripted is a hook that notes what it was told and then answers as the body
// says: its n-th line at attempt n, its last line after that. The answer "fail"
// is no answer.
const scripted = `#!/bin/sh
line="$(date +%s%N) $(tr -d '\n' <&3)"
printf '%s\n' "$line" >>"$JOURNAL"
n=0
while [ "$n" -lt "$RSCTL_ATTEMPT" ] && read -r next; do answer=$next; n=$((n + 1)); done
[ "$answer" != fail ] || exit 1
echo "$answer" >&4
`

// A journalEntry is one run of a scripted hook.
type journalEntry struct {
	at         time.Time
	Queue      string         `json:"queue"`
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key"`
	MessageID  string         `json:"message_id"`
	Attempt    int            `json:"attempt"`
	Expiration string         `json:"expiration"`
	Headers    map[string]any `json:"headers"`
}

// journal reads the runs of scripted hooks, by queue.
func journal(t *testing.T, path string) map[string][]journalEntry {
	t.Helper()
	out := map[string][]journalEntry{}
	for _, line := range linesOf(t, path) {
		stamp, data, _ := strings.Cut(line, " ")
		ns, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			t.Fatalf("journal line %q: %v", line, err)
		}
		e := journalEntry{at: time.Unix(0, ns)}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("journal line %q: %v", line, err)
		}
		out[e.Queue] = append(out[e.Queue], e)
	}
	return out
}

// A station is a spec with scripted hooks, applied to a broker.
type station struct {
	*harness.Broker
	t    *testing.T
	file string
	log  string // of the hooks
	env  []string
}

func newStation(t *testing.T, b *harness.Broker, text string) *station {
	t.Helper()
	s := &station{Broker: b, t: t, log: filepath.Join(t.TempDir(), "journal")}
	s.file = harness.Spec(t, text, map[string]string{"hook.sh": scripted})
	s.env = []string{"JOURNAL=" + s.log}
	b.MustRsctl(s.env, "-f", s.file, "apply")
	return s
}

// send publishes one message by rsctl; answers are the hook's, by attempt.
func (s *station) send(queue, id string, answers ...string) {
	s.t.Helper()
	s.MustRsctl(nil, "-f", s.file, "publish", queue, "--id", id, "--body", strings.Join(answers, "\n")+"\n")
}

func (s *station) run(more ...string) *harness.Process {
	s.t.Helper()
	return s.StartRsctl(s.env, append([]string{"-f", s.file, "run", "--log-format", "text"}, more...)...)
}

// runs waits until a message of a queue has been handled n times.
func (s *station) runs(queue, id string, n int) []journalEntry {
	s.t.Helper()
	var found []journalEntry
	harness.Eventually(s.t, fmt.Sprintf("%d runs of %s in %s", n, id, queue), func() bool {
		found = nil
		for _, e := range journal(s.t, s.log)[queue] {
			if e.MessageID == id {
				found = append(found, e)
			}
		}
		return len(found) >= n
	})
	return found
}

// late is what a busy machine may add to a delay; a long delay of a test is far
// longer.
const late = 30 * time.Second

// within fails unless gap, a delay of want, is none too short and not too long.
func within(t *testing.T, what string, gap, want time.Duration) {
	t.Helper()
	if gap < want || gap > want+late {
		t.Errorf("%s came back after %v, want %v to %v", what, gap.Round(time.Millisecond), want, want+late)
	}
}
