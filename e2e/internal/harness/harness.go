// Package harness runs the built rsctl against a real broker for tests.
//
// Every test gets a virtual host of its own, so tests run side by side and
// queues may have the names that examples give them.
package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/vhost"
)

// Root returns the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// binDir is where the binary is built; Main makes and removes it.
var binDir string

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "rsctl")
	out, err := exec.Command("go", "build", "-o", path, "github.com/rsctl/rsctl/cmd/rsctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rsctl: %w\n%s", err, out)
	}
	return path, nil
})

// Binary returns the path of rsctl, built once per test process, which must
// have a TestMain that calls [Main].
func Binary(t testing.TB) string {
	t.Helper()
	if binDir == "" {
		t.Fatal("this package needs a TestMain that calls harness.Main")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests and returns the exit status. It makes the folder of
// [Binary] and removes it at the end.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rsctl-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	return m.Run()
}

// A Broker is a virtual host of its own on the broker under test.
type Broker struct {
	URL           string // amqp://…/VHOST
	ManagementURL string
	VHost         string

	t    testing.TB
	conn *amqp.Connection
}

// NewBroker makes a virtual host that is removed when the test ends.
func NewBroker(t testing.TB) *Broker {
	t.Helper()
	host, err := vhost.Create(t.Context(), fmt.Sprintf("e2e-%s-%08x", name(t), rand.Uint32()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	conn, err := amqp.Dial(host.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Broker{URL: host.URL, ManagementURL: os.Getenv("RSCTL_MANAGEMENT_URL"), VHost: host.Name, t: t, conn: conn}
}

// name turns a test's name into one that needs no escaping anywhere.
func name(t testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, t.Name())
	return strings.ToLower(clean[:min(len(clean), 60)])
}
