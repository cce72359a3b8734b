package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
	"github.com/rsctl/rsctl/e2e/internal/proxy"
	"github.com/rsctl/rsctl/e2e/internal/vhost"
)

// noting is the part of a spec that follows broker, with a handler that writes
// the id of each message into the file "seen", and fails the first attempt of
// each, so that copies are published, too.
const noting = `declare_topology: true
queues:
  - name: orders
    type: classic
    max_attempts: 3
    dead_letter: orders.dead
    handler: {exec: [sh, ./note.sh]}
`

const noteScript = `[ "$RSCTL_ATTEMPT" = 1 ] && exit 75
echo "$RSCTL_MESSAGE_ID" >>seen
`

// hasSeen tells whether the handler of file has succeeded with message id. How
// often is not asked: a copy whose confirm is lost with its connection is sent
// again, and may be there twice.
func hasSeen(t *testing.T, file, id string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "seen"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.Contains(strings.Fields(string(text)), id)
}

func newProxy(t *testing.T, to string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestADeadNodeIsLeftForAnother(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	one, other := newProxy(t, b.URL), newProxy(t, b.URL)
	file := harness.Spec(t, fmt.Sprintf("version: 1\nbroker: {urls: [%q, %q]}\n", one.URL, other.URL)+noting, map[string]string{"note.sh": noteScript})
	b.MustRsctl(nil, "-f", file, "apply")
	other.Freeze() // so that both connections are with the one
	p := b.StartRsctl(nil, "-f", file, "run", "--listen", "", "--log-format", "text")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.Output())
		}
	})
	b.Publish("", "orders", bodied("a"))
	harness.Eventually(t, "the first message", func() bool { return hasSeen(t, file, "a") })

	other.Thaw()
	one.Close()
	died := time.Now()
	b.Publish("", "orders", bodied("b"))
	harness.Eventually(t, "a message by way of the other node", func() bool { return hasSeen(t, file, "b") })
	t.Logf("consumed and copied again %v after the node died", time.Since(died).Round(time.Millisecond))
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Output())
	}
}

func TestALoginThatIsRefusedForLongEndsTheRun(t *testing.T) {
	t.Parallel()
	host, err := vhost.Create(t.Context(), fmt.Sprintf("e2e-rotation-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	manage := func(method, path, body string) {
		t.Helper()
		if err := host.Manage(context.WithoutCancel(t.Context()), method, path, body, nil); err != nil {
			t.Error(err)
		}
	}
	user := host.Name
	t.Cleanup(func() {
		manage(http.MethodDelete, "users/"+user, "")
		if err := host.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	manage(http.MethodPut, "users/"+user, `{"password":"one","tags":""}`)
	manage(http.MethodPut, "permissions/"+host.Name+"/"+user, `{"configure":".*","write":".*","read":".*"}`)
	b := harness.At(t, host.URL, os.Getenv("RSCTL_MANAGEMENT_URL"))
	way := newProxy(t, host.URL)
	u, err := url.Parse(way.URL)
	if err != nil {
		t.Fatal(err)
	}
	file := harness.Spec(t, fmt.Sprintf("version: 1\nbroker: {url: \"amqp://%s:${file:password}@%s/%s\"}\n", user, u.Host, host.Name)+noting,
		map[string]string{"note.sh": noteScript, "password": "one\n"})
	b.MustRsctl(nil, "-f", file, "apply")
	p := b.StartRsctl(nil, "-f", file, "run", "--listen", "", "--log-format", "text", "--login-patience", "1s")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.Output())
		}
	})
	b.Publish("", "orders", bodied("a"))
	harness.Eventually(t, "the first message", func() bool { return hasSeen(t, file, "a") })

	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "password"), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	manage(http.MethodPut, "users/"+user, `{"password":"two","tags":""}`)
	way.Cut()
	b.Publish("", "orders", bodied("b"))
	harness.Eventually(t, "a message with the new password", func() bool { return hasSeen(t, file, "b") })

	manage(http.MethodPut, "users/"+user, `{"password":"three","tags":""}`)
	way.Cut()
	if code := p.Wait(t); code != 3 || !strings.Contains(p.Output(), "the login that has worked has been refused for 1s") {
		t.Errorf("exit code %d, want 3, and why:\n%s", code, p.Output())
	}
	for _, password := range []string{":one", ":two", "three"} {
		if strings.Contains(p.Output(), password) {
			t.Errorf("the log holds a password:\n%s", p.Output())
		}
	}
}
