package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
	"github.com/rsctl/rsctl/e2e/rabbit"
)

const slowSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - {name: slow, type: quorum, prefetch: 1, handler: {http: "${HOOK_URL}", timeout: 5m}}
`

// Up to 4.2 the broker closes the channel of a delivery that is unacknowledged
// for too long. Since 4.3 it cancels the consumer and requeues the delivery; the
// ack goes out later and does nothing.
func TestAHookThatOutlastsTheConsumerTimeoutIsNotRunAgain(t *testing.T) {
	t.Parallel()
	node, err := rabbit.Start(t.Context(), rabbit.Options{
		Config:   map[string]string{"consumer_timeout": "3000"},
		Advanced: "[{rabbit, [{channel_tick_interval, 1000}]}]",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	var calls atomic.Int64
	release := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		<-release
	}))
	t.Cleanup(hook.Close)
	b := harness.At(t, node.URL, node.ManagementURL)
	env := []string{"HOOK_URL=" + hook.URL}
	file := harness.Spec(t, slowSpec, nil)
	b.MustRsctl(env, "-f", file, "apply")
	b.Publish("", "slow", numbered(1)...)
	run := b.StartRsctl(env, "-f", file, "run", "--log-format", "text", "--listen", "")
	harness.Eventually(t, "the broker to take the delivery away", func() bool { return strings.Contains(run.Output(), "subscribing again") })
	close(release)
	harness.Eventually(t, "the redelivery to be acked", func() bool {
		return strings.Contains(run.Output(), "acked without running the handler again: it has succeeded")
	})
	stop(t, run)
	if n := calls.Load(); n != 1 || b.Ready("slow") != 0 {
		t.Errorf("the handler ran %d times and %d messages are left, want one run that ends it\n%s", n, b.Ready("slow"), run.Output())
	}
}
