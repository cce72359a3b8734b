package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const outageSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
defaults: {type: classic, max_attempts: 3, concurrency: 8, delay: dlx_ttl, backoff: 500ms}
queues:
  - {name: refused, dead_letter: refused.dead, handler: {http: "http://%s/"}}
  - {name: nowhere, dead_letter: nowhere.dead, handler: {http: "http://no-such-host.invalid/"}}
  - {name: silent, dead_letter: silent.dead, handler: {http: "http://%s/", timeout: 500ms}}
`

// An endpoint that cannot be reached is not the message's fault, so that an
// outage spends nothing; one that does not answer spends an attempt each time.
func TestAnEndpointThatIsAwaySpendsNoAttempt(t *testing.T) {
	t.Parallel()
	const messages = 200
	b := harness.NewBroker(t)
	away := listen(t)
	address := away.Addr().String()
	away.Close()
	silent := listen(t) // connects, by the system's own hand, and never answers
	t.Cleanup(func() { silent.Close() })
	file := harness.Spec(t, fmt.Sprintf(outageSpec, address, silent.Addr()), nil)
	b.MustRsctl(nil, "-f", file, "apply")
	b.Publish("", "refused", numbered(messages)...)
	b.Publish("", "nowhere", numbered(1)...)
	b.Publish("", "silent", numbered(1)...)
	run := b.StartRsctl(nil, "-f", file, "run", "--log-format", "text")
	for _, reason := range []string{"connection refused", "no such host", "Client.Timeout"} {
		harness.Eventually(t, "the log to say "+reason, func() bool { return saysOneOf(run.Output(), reason) })
	}
	b.TakeN("silent.dead", 1)
	harness.Eventually(t, "several probes of the outage", func() bool { return strings.Count(run.Output(), "hook still unavailable") >= 4 })

	hook := newAnswerer(t, always("ack"))
	back, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: hook}
	go server.Serve(back) //nolint:errcheck // ends with the test
	t.Cleanup(func() { server.Close() })
	harness.Eventually(t, "every message to be handled", func() bool {
		_, acked, _ := hook.counts("refused")
		return acked == messages
	})
	if _, _, later := hook.counts("refused"); later != 0 || b.Ready("refused.dead") != 0 {
		t.Errorf("the outage spent attempts: %d messages came back, %d are dead", later, b.Ready("refused.dead"))
	}
	stop(t, run)
	if b.Ready("nowhere") != 1 || b.Ready("nowhere.dead") != 0 {
		t.Errorf("nowhere holds %d messages, want its 1", b.Ready("nowhere"))
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// saysOneOf reports whether a log has the words; a time-out has several forms.
func saysOneOf(log, words string) bool {
	if words == "Client.Timeout" {
		return strings.Contains(log, "timeout") || strings.Contains(log, "timed out") || strings.Contains(log, "no answer")
	}
	return strings.Contains(log, words)
}
