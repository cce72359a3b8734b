// Package harness runs the built rsctl against a real broker for tests.
//
// Every test gets a virtual host of its own, so tests run side by side and
// queues may have the names that examples give them.
package harness

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

const noBroker = `%s is not set: these tests need a RabbitMQ. Run "make test", which starts a private one, or
set RSCTL_AMQP_URL and RSCTL_MANAGEMENT_URL to one that may be used for tests`

// Root returns the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rsctl-e2e-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "rsctl")
	out, err := exec.Command("go", "build", "-o", path, "github.com/rsctl/rsctl/cmd/rsctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rsctl: %w\n%s", err, out)
	}
	return path, nil
})

// Binary returns the path of rsctl, built once per test process. A TestMain
// that calls [Main] removes it at the end.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests and removes what [Binary] built.
func Main(m *testing.M) int {
	defer func() {
		if path, err := build(); err == nil {
			os.RemoveAll(filepath.Dir(path))
		}
	}()
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
	amqpURL, managementURL := os.Getenv("RSCTL_AMQP_URL"), os.Getenv("RSCTL_MANAGEMENT_URL")
	if amqpURL == "" {
		t.Fatalf(noBroker, "RSCTL_AMQP_URL")
	}
	if managementURL == "" {
		t.Fatalf(noBroker, "RSCTL_MANAGEMENT_URL")
	}
	u, err := url.Parse(amqpURL)
	if err != nil {
		t.Fatalf("RSCTL_AMQP_URL: %v", err)
	}
	b := &Broker{t: t, ManagementURL: managementURL, VHost: fmt.Sprintf("e2e-%s-%08x", name(t), rand.Uint32())}
	b.manage(http.MethodPut, "vhosts/"+b.VHost, "")
	t.Cleanup(func() { b.manage(http.MethodDelete, "vhosts/"+b.VHost, "") })
	user := "guest"
	if u.User != nil {
		user = u.User.Username()
	}
	b.manage(http.MethodPut, "permissions/"+b.VHost+"/"+user, `{"configure":".*","write":".*","read":".*"}`)
	u.Path = "/" + b.VHost
	b.URL = u.String()
	b.conn, err = amqp.Dial(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	return b
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

// manage sends one request to the management API; anything but success ends the
// test.
func (b *Broker) manage(method, path, body string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.ManagementURL+"/api/"+path, bytes.NewBufferString(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if req.URL.User == nil {
		user, password := credentials()
		req.SetBasicAuth(user, password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		b.t.Fatalf("management API: %s %s: %s", method, path, resp.Status)
	}
}

// credentials are those of RSCTL_AMQP_URL.
func credentials() (user, password string) {
	u, err := url.Parse(os.Getenv("RSCTL_AMQP_URL"))
	if err != nil || u.User == nil {
		return "guest", "guest"
	}
	password, _ = u.User.Password()
	return u.User.Username(), password
}
