package metrics_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/metrics"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMetrics(queues ...string) *metrics.Metrics {
	return metrics.New(metrics.Build{Version: "v1.2.3", Revision: "abc", GoVersion: "go1.26"}, queues)
}

// observe tells m about events in order.
func observe(m *metrics.Metrics, events ...runtime.Event) {
	for _, e := range events {
		m.Observe(e)
	}
}

// wantText compares the named metrics with their text form.
func wantText(t *testing.T, m *metrics.Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(newMetrics("orders").Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestDeliveriesAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	m := newMetrics("orders", "mail")
	for _, e := range []runtime.Ending{runtime.EndedAck, runtime.EndedAck, runtime.EndedRetryAfter, runtime.EndedLost} {
		observe(m, runtime.Received{Queue: "orders"}, runtime.Settled{Queue: "orders", Ending: e})
	}
	observe(m, runtime.Received{Queue: "mail"}, runtime.Received{Queue: "mail"},
		runtime.Settled{Queue: "mail", Ending: runtime.EndedRetry, Spent: true})
	wantText(t, m, `
# HELP rsctl_deliveries_total Deliveries that have ended, by outcome: the handler's (ack, drop, retry, retry_after), handed_back before any handler has seen it, or lost with its channel.
# TYPE rsctl_deliveries_total counter
rsctl_deliveries_total{outcome="ack",queue="mail"} 0
rsctl_deliveries_total{outcome="ack",queue="orders"} 2
rsctl_deliveries_total{outcome="drop",queue="mail"} 0
rsctl_deliveries_total{outcome="drop",queue="orders"} 0
rsctl_deliveries_total{outcome="handed_back",queue="mail"} 0
rsctl_deliveries_total{outcome="handed_back",queue="orders"} 0
rsctl_deliveries_total{outcome="lost",queue="mail"} 0
rsctl_deliveries_total{outcome="lost",queue="orders"} 1
rsctl_deliveries_total{outcome="retry",queue="mail"} 1
rsctl_deliveries_total{outcome="retry",queue="orders"} 0
rsctl_deliveries_total{outcome="retry_after",queue="mail"} 0
rsctl_deliveries_total{outcome="retry_after",queue="orders"} 1
# HELP rsctl_spent_total Messages that failed their last attempt: dead-lettered, or discarded without a dead-letter queue.
# TYPE rsctl_spent_total counter
rsctl_spent_total{queue="mail"} 1
rsctl_spent_total{queue="orders"} 0
# HELP rsctl_unsettled_deliveries Deliveries in hand: their handler waits or runs, or their settlement waits.
# TYPE rsctl_unsettled_deliveries gauge
rsctl_unsettled_deliveries{queue="mail"} 1
rsctl_unsettled_deliveries{queue="orders"} 0
`, "rsctl_deliveries_total", "rsctl_spent_total", "rsctl_unsettled_deliveries")
}

func TestHooksAreTimedAndTheirAttemptsCounted(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	observe(m,
		runtime.HookStarted{Queue: "q", Attempt: 1, Lag: 1500 * time.Millisecond},
		runtime.HookEnded{Queue: "q", Attempt: 1, Took: 20 * time.Millisecond, Verdict: hooks.Ack},
		runtime.HookStarted{Queue: "q", Attempt: 4},
		runtime.HookEnded{Queue: "q", Attempt: 4, Took: 2 * time.Second, Verdict: hooks.Failed},
		runtime.HookStarted{Queue: "q", Attempt: 2},
		runtime.HookEnded{Queue: "q", Attempt: 2, Took: time.Hour, Err: errors.New("connection refused")},
		runtime.HookStarted{Queue: "q", Attempt: 2},
	)
	wantText(t, m, `
# HELP rsctl_attempts Number of the attempt of each handler call; the first counts as 1.
# TYPE rsctl_attempts histogram
rsctl_attempts_bucket{queue="q",le="1"} 1
rsctl_attempts_bucket{queue="q",le="2"} 1
rsctl_attempts_bucket{queue="q",le="3"} 1
rsctl_attempts_bucket{queue="q",le="5"} 2
rsctl_attempts_bucket{queue="q",le="10"} 2
rsctl_attempts_bucket{queue="q",le="20"} 2
rsctl_attempts_bucket{queue="q",le="50"} 2
rsctl_attempts_bucket{queue="q",le="+Inf"} 2
rsctl_attempts_sum{queue="q"} 5
rsctl_attempts_count{queue="q"} 2
# HELP rsctl_handler_unavailable_total Handler calls that could not be made: command not found, connection refused. They spend no attempt.
# TYPE rsctl_handler_unavailable_total counter
rsctl_handler_unavailable_total{queue="q"} 1
# HELP rsctl_handlers_in_flight Handlers that run.
# TYPE rsctl_handlers_in_flight gauge
rsctl_handlers_in_flight{queue="q"} 1
`, "rsctl_attempts", "rsctl_handler_unavailable_total", "rsctl_handlers_in_flight")
	for _, want := range []string{
		`rsctl_handler_duration_seconds_bucket{queue="q",le="0.025"} 1`,
		`rsctl_handler_duration_seconds_count{queue="q"} 2`,
		`rsctl_handler_duration_seconds_sum{queue="q"} 2.02`,
		`rsctl_first_attempt_lag_seconds_bucket{queue="q",le="2"} 1`,
		`rsctl_first_attempt_lag_seconds_sum{queue="q"} 1.5`,
	} {
		if text := scrape(t, m); !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestCopiesAreCountedByPurposeAndResult(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	try := func(p settle.Purpose, r runtime.CopyResult) {
		observe(m, runtime.CopyStarted{Queue: "q", Purpose: p}, runtime.CopyEnded{Queue: "q", Purpose: p, Result: r})
	}
	try(settle.ForRetry, runtime.CopyConfirmed)
	try(settle.ForDeadLetter, runtime.CopyReturned)
	try(settle.ForDeadLetter, runtime.CopyReturned)
	observe(m, runtime.CopyStarted{Queue: "q"}, runtime.CopyHeld{Queue: "q"}, runtime.CopyHeld{Queue: "q"}, runtime.CopyReleased{Queue: "q"})
	wantText(t, m, `
# HELP rsctl_copies_in_flight Copies on their way: not confirmed yet.
# TYPE rsctl_copies_in_flight gauge
rsctl_copies_in_flight{queue="q"} 1
# HELP rsctl_copies_total Tries to publish a copy or a reply, by purpose (retry, delay, dead_letter, reply) and result.
# TYPE rsctl_copies_total counter
rsctl_copies_total{purpose="dead_letter",queue="q",result="confirmed"} 0
rsctl_copies_total{purpose="dead_letter",queue="q",result="returned"} 2
rsctl_copies_total{purpose="delay",queue="q",result="confirmed"} 0
rsctl_copies_total{purpose="retry",queue="q",result="confirmed"} 1
# HELP rsctl_held_copies Copies that wait in this process until their delay is over (delay: timer).
# TYPE rsctl_held_copies gauge
rsctl_held_copies{queue="q"} 1
`, "rsctl_copies_in_flight", "rsctl_copies_total", "rsctl_held_copies")
}

func TestConnectionsAndQueuesGoUpAndDown(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	observe(m,
		runtime.Disconnected{Purpose: "consume", Err: errors.New("refused")}, // the first tries are no reconnects
		runtime.Connected{Purpose: "consume"}, runtime.Connected{Purpose: "publish"},
		runtime.Consuming{Queue: "q"}, runtime.Paused{Queue: "q"}, runtime.Blocked{Reason: "low on memory"},
		runtime.Disconnected{Purpose: "consume"}, runtime.Connected{Purpose: "consume"},
		runtime.Disconnected{Purpose: "publish"},
		runtime.Connected{Purpose: "consume", Queues: []string{"2"}}, // the first of a second connection is no reconnect
	)
	const help = `
# HELP rsctl_connected 1 while the connection is open, by what it is for.
# TYPE rsctl_connected gauge
rsctl_connected{connection="consume"} 1
rsctl_connected{connection="publish"} 0
# HELP rsctl_reconnects_total Connections opened after the first, by what they are for.
# TYPE rsctl_reconnects_total counter
rsctl_reconnects_total{connection="consume"} 1
rsctl_reconnects_total{connection="publish"} 0
`
	wantText(t, m, help, "rsctl_connected", "rsctl_reconnects_total")
	wantText(t, m, states("1"), "rsctl_queue_consuming", "rsctl_queue_paused", "rsctl_publish_blocked")
	observe(m, runtime.NotConsuming{Queue: "q"}, runtime.Resumed{Queue: "q"}, runtime.Unblocked{})
	wantText(t, m, states("0"), "rsctl_queue_consuming", "rsctl_queue_paused", "rsctl_publish_blocked")
}

// states is the text of everything that is on or off.
func states(on string) string {
	return strings.ReplaceAll(`
# HELP rsctl_publish_blocked 1 while the broker blocks publishing (connection.blocked) and copies wait.
# TYPE rsctl_publish_blocked gauge
rsctl_publish_blocked ON
# HELP rsctl_queue_consuming 1 while a consumer of the queue is registered.
# TYPE rsctl_queue_consuming gauge
rsctl_queue_consuming{queue="q"} ON
# HELP rsctl_queue_paused 1 while the queue waits for a handler that cannot be run.
# TYPE rsctl_queue_paused gauge
rsctl_queue_paused{queue="q"} ON
`, "ON", on)
}

func TestAQueueThatIsNotInTheSpecBecomesNoSeries(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	before := countSeries(t, m)
	observe(m,
		runtime.Received{Queue: "stray"}, runtime.Settled{Queue: "stray", Ending: runtime.EndedAck},
		runtime.CopyEnded{Queue: "stray", Result: runtime.CopyNacked}, runtime.Connected{Purpose: "stray"},
		runtime.Settled{Queue: "q", Ending: "stray"}, runtime.Draining{},
	)
	if after := countSeries(t, m); after != before || strings.Contains(scrape(t, m), "stray") {
		t.Errorf("%d series, want the %d there were", after, before)
	}
}

func countSeries(t *testing.T, m *metrics.Metrics) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(scrape(t, m)) {
		if strings.HasPrefix(line, "rsctl_") {
			n++
		}
	}
	return n
}

func TestObservingAndScrapingAtTheSameTimeCountsEverything(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	const workers, each = 8, 200
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				observe(m, runtime.Received{Queue: "q"}, runtime.CopyStarted{Queue: "q"},
					runtime.CopyEnded{Queue: "q", Result: runtime.CopyNacked}, runtime.Settled{Queue: "q", Ending: runtime.EndedAck})
			}
		})
	}
	all.Go(func() {
		for range 5 {
			if text := scrape(t, m); !strings.Contains(text, "rsctl_build_info") {
				t.Error("a scrape is cut short")
			}
		}
	})
	all.Wait()
	text := scrape(t, m)
	for _, want := range []string{
		`rsctl_deliveries_total{outcome="ack",queue="q"} 1600`,
		`rsctl_copies_total{purpose="retry",queue="q",result="nacked"} 1600`,
		`rsctl_unsettled_deliveries{queue="q"} 0`,
		`rsctl_build_info{goversion="go1.26",revision="abc",version="v1.2.3"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// scrape is what Prometheus would get.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(rec.Result().Body)
	if err != nil || rec.Code != http.StatusOK {
		t.Errorf("scrape: status %d, %v", rec.Code, err)
	}
	return string(body)
}
