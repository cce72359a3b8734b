package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

// A process with fewer file descriptors than calls it may make at a time spends
// no attempt on that: what it has does the work.
func TestWithoutFileDescriptorsNoMessageIsSpent(t *testing.T) {
	t.Parallel()
	const n = 80
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(300 * time.Millisecond) }))
	t.Cleanup(server.Close)
	b := harness.NewBroker(t)
	path := harness.Spec(t, fmt.Sprintf(endpointSpec, "classic", 40, "", server.Listener.Addr(), "30s"), nil)
	b.MustRsctl(nil, "-f", path, "apply")
	for range n {
		b.Publish("", "orders", amqp.Publishing{Body: []byte("x")})
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 30 && exec "$@"`, "sh",
		harness.Binary(t), "-f", path, "run", "--drain", "--listen", "")
	cmd.Env = append(os.Environ(), "AMQP_URL="+b.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if dead := b.Ready("orders.dead"); dead != 0 || strings.Contains(string(out), "handler failed") {
		t.Errorf("%d of %d messages are dead-lettered\n%s", dead, n, out)
	}
	if !strings.Contains(string(out), "too many open files: raise ulimit -n") {
		t.Errorf("the log does not name the limit\n%s", out)
	}
}
