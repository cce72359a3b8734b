package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const (
	outageConcurrency = 16
	outageRate        = 200 // messages per second
	// outageTime is how long the endpoint is away, unless RSCTL_OUTAGE says.
	outageTime = 8 * time.Second
)

const endpointSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: %s
    max_attempts: 3
    dead_letter: orders.dead
    concurrency: %d%s
    handler: {http: "http://%s/", timeout: %s}
`

// An outage of the endpoint under load spends no attempt, whatever its length;
// RSCTL_OUTAGE=60s makes it long. But a connection that the system had taken and
// the endpoint had not, when it went, is reset, which looks like an endpoint that
// the message has killed: an attempt, of at most as many calls as run at a time.
func TestAnOutageOfTheEndpointUnderLoadSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	length := outageTime
	if text := os.Getenv("RSCTL_OUTAGE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("RSCTL_OUTAGE: %v", err)
		}
	}
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := startOutage(t, kind, "", "30s")
			load := o.publish(outageRate)
			o.eventuallyAcked(outageRate / 2)

			closing := time.Now()
			o.end.away()
			closed := time.Now()
			harness.Eventually(t, "the queue to pause", o.paused)
			noticed := time.Now()
			waitUntil(t, closed.Add(length))
			opening := time.Now()
			o.end.open()
			harness.Eventually(t, "the queue to go on", func() bool { return !o.paused() })
			back := time.Now()
			o.eventuallyAcked(outageRate) // and some of what comes after it
			total := load.stop()
			o.eventuallyAcked(total)
			drained := time.Now()
			o.ready.end()

			o.wantReady(http.StatusOK, o.up, closing, "before the outage")
			o.wantReady(http.StatusServiceUnavailable, noticed, opening, "during the outage")
			o.wantReady(http.StatusServiceUnavailable, noticed, o.end.firstCall(), "until the first call after it")
			o.wantReady(http.StatusOK, back, drained, "after it")
			stop(t, o.run)
			acked, calls, later := o.end.counts()
			if acked != total || calls != total {
				t.Errorf("%d messages were acked by %d calls, want %d by one call each", acked, calls, total)
			}
			if spent := o.says("handler failed"); later != spent || spent > outageConcurrency {
				t.Errorf("%d attempts were spent and %d calls were later attempts, want only what was under way when the endpoint went\n%s", spent, later, o.run.Output())
			}
			if left, dead := o.b.Ready("orders"), o.b.Ready("orders.dead"); left != 0 || dead != 0 {
				t.Errorf("%d messages are left and %d dead-lettered, want none", left, dead)
			}
			t.Logf("%d messages, away for %v, %d attempts spent: paused after %v, went on %v after its return, drained %v later, %d samples of /readyz",
				total, length, later, noticed.Sub(closed).Round(time.Millisecond), back.Sub(opening).Round(time.Millisecond),
				drained.Sub(back).Round(time.Millisecond), len(o.ready.between(o.up, drained)))
		})
	}
}

// An endpoint that answers 503 to everything, or nothing within the timeout, is
// there: its answers are failures. Only a breaker bounds what they spend, to those
// that trip it, those that were running then, and one a cooldown.
func TestABreakerBoundsWhatAFailingEndpointSpends(t *testing.T) {
	t.Parallel()
	const failures, probes = 5, 2
	breaker := fmt.Sprintf("\n    breaker: {failures: %d, cooldown: 1s}", failures)
	for _, tt := range []struct {
		name, timeout string
		fail          http.HandlerFunc
	}{
		{"503 to everything", "30s", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		{"no answer", "2s", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // else the server does not see that the client is gone
			<-r.Context().Done()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := startOutage(t, "classic", breaker, tt.timeout)
			load := o.publish(outageRate)
			o.eventuallyAcked(outageRate / 2)
			o.end.answer(tt.fail)
			harness.Eventually(t, "some probes to fail", func() bool { return o.says("queue stays paused") >= probes })
			noticed := time.Now()
			o.end.answer(nil)
			harness.Eventually(t, "the queue to go on", func() bool { return !o.paused() })
			back := time.Now()
			total := load.stop()
			harness.Eventually(t, "every message to end", func() bool {
				acked, _, _ := o.end.counts()
				return acked+o.b.Ready("orders.dead") == total
			})
			drained := time.Now()
			o.ready.end()

			o.wantReady(http.StatusServiceUnavailable, o.pausedSince(), noticed, "while the breaker is open")
			o.wantReady(http.StatusOK, back, drained, "after it")
			stop(t, o.run)
			failed, trips, failedProbes := o.end.failed(), o.says("queue paused"), o.says("queue stays paused")
			if most := trips*(failures+outageConcurrency-1) + failedProbes; failed > most {
				t.Errorf("%d attempts have failed, want at most %d: for each of %d trips, %d and those that run beside the last; and %d probes",
					failed, most, trips, failures, failedProbes)
			}
			if left := o.b.Ready("orders"); left != 0 {
				t.Errorf("%d messages are left", left)
			}
			acked, calls, _ := o.end.counts()
			t.Logf("%d messages, %d acked, %d calls, %d of them failed: %d trips, %d probes", total, acked, calls, failed, trips, failedProbes)
		})
	}
}

// outage is a run against an endpoint that will fail.
type outage struct {
	t     *testing.T
	b     *harness.Broker
	end   *endpoint
	run   *harness.Process
	ready *readiness
	up    time.Time // /readyz has said 200
}

func startOutage(t *testing.T, kind, options, timeout string) *outage {
	t.Helper()
	o := &outage{t: t, b: harness.NewBroker(t), end: newEndpoint(t)}
	file := harness.Spec(t, fmt.Sprintf(endpointSpec, kind, outageConcurrency, options, o.end.address, timeout), nil)
	o.b.MustRsctl(nil, "-f", file, "apply")
	o.run = o.b.StartRsctl(nil, "-f", file, "run", "--log-format", "text", "--listen", "127.0.0.1:0")
	var address string
	harness.Eventually(t, "the run to serve /readyz", func() bool {
		found := serving.FindStringSubmatch(o.run.Output())
		if found != nil {
			address = found[1]
		}
		return found != nil
	})
	harness.Eventually(t, "/readyz to say 200", func() bool {
		s, err := askReady(t.Context(), address)
		return err == nil && s.status == http.StatusOK
	})
	o.up = time.Now()
	o.ready = watchReadiness(t, address)
	return o
}

var serving = regexp.MustCompile(`serving /healthz.* address=(\S+)`)

func askReady(ctx context.Context, address string) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return sample{}, err
	}
	s := sample{asked: time.Now()}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	s.answered, s.status, s.text = time.Now(), res.StatusCode, string(text)
	return s, err
}

// paused reports whether the log last said that the queue is paused.
func (o *outage) paused() bool {
	log := o.run.Output()
	return strings.LastIndex(log, "queue paused") > strings.LastIndex(log, "handler available again")
}

// says counts how often the log says something.
func (o *outage) says(text string) int { return strings.Count(o.run.Output(), text) }

// pausedSince is when the log said that the queue is paused, for the last time.
func (o *outage) pausedSince() time.Time {
	o.t.Helper()
	lines := pauses.FindAllStringSubmatch(o.run.Output(), -1)
	if len(lines) == 0 {
		o.t.Fatal("the queue was never paused")
	}
	at, err := time.Parse(time.RFC3339Nano, lines[len(lines)-1][1])
	if err != nil {
		o.t.Fatal(err)
	}
	return at.Add(time.Millisecond) // the log cuts them off
}

var pauses = regexp.MustCompile(`time=(\S+) .*queue paused"`)

// wantReady holds every sample of a span against what /readyz has to say.
func (o *outage) wantReady(status int, from, to time.Time, when string) {
	o.t.Helper()
	for _, s := range o.ready.between(from, to) {
		if s.status != status {
			o.t.Errorf("%s, /readyz says %d: %s", when, s.status, s.text)
			return
		}
		if status != http.StatusOK && !strings.Contains(s.text, `queue "orders" is paused`) {
			o.t.Errorf("%s, /readyz does not say why it is not ready: %s", when, s.text)
			return
		}
	}
}

// eventuallyAcked waits until n messages have been acked, as long as there are
// more of them within a minute.
func (o *outage) eventuallyAcked(n int) {
	o.t.Helper()
	for {
		before, _, _ := o.end.counts()
		if before >= n {
			return
		}
		harness.Eventually(o.t, fmt.Sprintf("more than %d of %d messages to be acked", before, n), func() bool {
			acked, _, _ := o.end.counts()
			return acked > before
		})
	}
}

// load publishes until it is stopped.
type load struct {
	t         *testing.T
	cancel    context.CancelFunc
	done      sync.WaitGroup
	published int
}

// publish starts a load of so many messages per second.
func (o *outage) publish(rate int) *load {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	l := &load{t: o.t, cancel: cancel}
	began := time.Now()
	l.done.Go(func() {
		for ctx.Err() == nil {
			due := int(time.Since(began).Seconds() * float64(rate))
			var batch []amqp.Publishing
			for ; l.published < due; l.published++ {
				batch = append(batch, amqp.Publishing{MessageId: fmt.Sprintf("m-%06d", l.published), DeliveryMode: amqp.Persistent})
			}
			o.b.Publish("", "orders", batch...)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	o.t.Cleanup(func() { l.stop() })
	return l
}

// stop returns how many messages were published, all of them confirmed.
func (l *load) stop() int {
	l.cancel()
	l.done.Wait()
	return l.published
}

// waitUntil is the length of an outage, not a wait for something to happen.
func waitUntil(t *testing.T, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-t.Context().Done():
	}
}
