package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

// An answerer is an endpoint that gives each delivery the same kind of answer,
// which can be changed, and remembers what it has seen.
type answerer struct {
	*httptest.Server

	mu     sync.Mutex
	answer func() string             // the outcome
	seen   map[string]map[string]int // by queue and message, the highest attempt
	acked  map[string]map[string]int // the same, of those that were acked
}

func newAnswerer(t *testing.T, answer func() string) *answerer {
	t.Helper()
	a := &answerer{answer: answer, seen: map[string]map[string]int{}, acked: map[string]map[string]int{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// ServeHTTP answers one delivery.
func (a *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	outcome := a.answer()
	note(a.seen, r)
	if outcome == "ack" {
		note(a.acked, r)
	}
	w.Header().Set("RSCTL-Outcome", outcome)
}

func note(in map[string]map[string]int, r *http.Request) {
	queue, id := r.Header.Get("RSCTL-Queue"), r.Header.Get("RSCTL-Message-Id")
	attempt, _ := strconv.Atoi(r.Header.Get("RSCTL-Attempt"))
	if in[queue] == nil {
		in[queue] = map[string]int{}
	}
	in[queue][id] = max(in[queue][id], attempt)
}

func (a *answerer) set(answer func() string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// counts returns how many messages of a queue were seen, were acked, and were
// acked after their first attempt.
func (a *answerer) counts(queue string) (seen, acked, later int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, attempt := range a.acked[queue] {
		if attempt > 1 {
			later++
		}
	}
	return len(a.seen[queue]), len(a.acked[queue]), later
}

func always(outcome string) func() string { return func() string { return outcome } }

// A process with 100 waiting messages in each place is killed. Only the timer
// keeps them in its own memory, so that queue's process gets a SIGTERM.
func TestKilledWhileMessagesWaitLosesNone(t *testing.T) {
	t.Parallel()
	const messages = 100
	b := harness.NewBroker(t)
	list := places(b)
	hook := newAnswerer(t, always("retry_after 20s"))
	file := harness.Spec(t, placesSpec(list, "20s", "1h",
		"    concurrency: 4\n    prefetch: 250\n    handler: {http: \""+hook.URL+"\"}\n"), nil)
	b.MustRsctl(nil, "-f", file, "apply")
	args := []string{"-f", file, "run", "--log-level", "error"}
	for _, p := range list {
		b.Publish("", p.queue, numbered(messages)...)
		if p.strategy != "timer" {
			args = append(args, "--queue", p.queue)
		}
	}
	run := b.StartRsctl(nil, args...)
	timer := b.StartRsctl(nil, "-f", file, "run", "--queue", "timer", "--shutdown-timeout", "2s")
	for _, p := range list {
		harness.Eventually(t, "every message of "+p.queue+" to be told to wait", func() bool {
			seen, _, _ := hook.counts(p.queue)
			return seen == messages
		})
	}
	// On a slow machine some are through before the last of them waits.
	const most = messages * 9 / 10
	waiting := map[string]int{"rsctl.v1.level-04,rsctl.v1.level-02": 2 * most}
	for _, p := range list {
		if names := p.waitingQueue("20s"); names != "" {
			waiting[names] = most
		}
	}
	for names, n := range waiting {
		harness.Eventually(t, fmt.Sprintf("%d copies in %s", n, names), func() bool {
			sum := 0
			for name := range strings.SplitSeq(names, ",") {
				sum += b.Ready(name)
			}
			return sum >= n
		})
	}
	run.Kill()
	if err := timer.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	timer.Wait(t)

	hook.set(always("ack"))
	again := b.StartRsctl(nil, "-f", file, "run")
	for _, p := range list {
		harness.Eventually(t, "every message of "+p.queue+" to come back", func() bool {
			_, acked, _ := hook.counts(p.queue)
			return acked == messages
		})
		_, _, later := hook.counts(p.queue)
		if copied := !p.uncounted && p.strategy != "hold"; copied && later < messages/2 {
			t.Errorf("%s: %d messages came back as copies; the others did not wait when the process was killed", p.queue, later)
		}
	}
	for _, p := range list { // a copy whose original was not settled comes twice
		harness.Eventually(t, p.queue+" to be empty", func() bool { return b.Ready(p.queue) == 0 })
	}
	stop(t, again)
}

const killLoopSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
defaults: {max_attempts: 4, concurrency: 16, delay: dlx_ttl, backoff: 200ms}
queues:
  - {name: classic, type: classic, dead_letter: classic.dead, handler: {http: "%[1]s"}}
  - {name: quorum, type: quorum, dead_letter: quorum.dead, handler: {http: "%[1]s"}}
`

// A copy is on the broker before its original is settled, so that a process that
// is killed in between leaves two messages rather than none.
func TestKilledAgainAndAgainWhileMessagesAreCopiedLosesNone(t *testing.T) {
	t.Parallel()
	const messages, kills = 500, 12
	b := harness.NewBroker(t)
	hook := newAnswerer(t, func() string {
		time.Sleep(10 * time.Millisecond) // so that the queues last for the kills
		return []string{"ack", "retry"}[rand.IntN(2)]
	})
	file := harness.Spec(t, fmt.Sprintf(killLoopSpec, hook.URL), nil)
	b.MustRsctl(nil, "-f", file, "apply")
	queues := []string{"classic", "quorum"}
	for _, q := range queues {
		b.Publish("", q, numbered(messages)...)
	}
	for range kills {
		p := b.StartRsctl(nil, "-f", file, "run", "--log-level", "error")
		time.Sleep(500*time.Millisecond + rand.N(time.Second)) // how long a process lives
		p.Kill()
	}
	last := b.StartRsctl(nil, "-f", file, "run", "--log-level", "error")
	for _, q := range queues {
		ended := map[string]bool{}
		harness.Eventually(t, "every message of "+q+" to be acked or dead-lettered", func() bool {
			for _, d := range b.Take(q + ".dead") {
				ended[d.MessageId] = true
			}
			hook.mu.Lock()
			defer hook.mu.Unlock()
			for id := range hook.acked[q] {
				ended[id] = true
			}
			return len(ended) == messages
		})
	}
	stop(t, last)
}
