package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
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
	away := newAddress(t)
	silent := listen(t) // connects, by the system's own hand, and never answers
	t.Cleanup(func() { silent.Close() })
	file := harness.Spec(t, fmt.Sprintf(outageSpec, away, silent.Addr()), nil)
	b.MustRsctl(nil, "-f", file, "apply")
	b.Publish("", "refused", numbered(messages)...)
	b.Publish("", "nowhere", numbered(1)...)
	b.Publish("", "silent", numbered(1)...)
	run := b.StartRsctl(nil, "-f", file, "run", "--log-format", "text")
	for _, reason := range []string{"connection refused", "no such host", "Client.Timeout"} {
		harness.Eventually(t, "the log to say "+reason, func() bool { return saysOneOf(run.Output(), reason) })
	}
	b.TakeN("silent.dead", 1)
	harness.Eventually(t, "several probes of the outage", func() bool { return strings.Count(run.Output(), "handler still unavailable") >= 4 })

	hook := newAnswerer(t, always("ack"))
	server := &http.Server{Handler: hook}
	go server.Serve(away.listen(t)) //nolint:errcheck // ends with the test
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

// An address is taken, so that nobody else can use it, and refuses connections
// until somebody listens.
type address struct {
	socket *os.File
	name   string
}

func newAddress(t *testing.T) *address {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	a := &address{socket: os.NewFile(uintptr(fd), "socket")}
	t.Cleanup(func() { a.socket.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	a.name = fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	return a
}

// String returns HOST:PORT.
func (a *address) String() string { return a.name }

func (a *address) listen(t *testing.T) net.Listener {
	t.Helper()
	if err := syscall.Listen(int(a.socket.Fd()), syscall.SOMAXCONN); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(a.socket)
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
