package runtime

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
)

// management is the broker's HTTP API, for what AMQP cannot set up: users and
// policies.
type management struct {
	b    *bench
	base *url.URL
}

func (b *bench) management() management {
	b.t.Helper()
	text := os.Getenv("RSCTL_MANAGEMENT_URL")
	if text == "" {
		b.t.Fatal("this test needs RabbitMQ's management API: run make test, or set RSCTL_MANAGEMENT_URL=http://guest:guest@127.0.0.1:15672/")
	}
	base, err := url.Parse(text)
	if err != nil {
		b.t.Fatal("RSCTL_MANAGEMENT_URL is not a URL")
	}
	if base.User == nil {
		base.User = b.user()
	}
	return management{b, base}
}

func (b *bench) user() *url.Userinfo {
	u, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	return u.User
}

// vhost is the one that the bench's queues are in.
func (b *bench) vhost() string { return b.conn.Config.Vhost }

// put makes an object that is deleted after the test.
func (m management) put(path string, object any) {
	m.b.t.Helper()
	m.call(http.MethodPut, path, object)
	m.b.t.Cleanup(func() { m.call(http.MethodDelete, path, nil) })
}

func (m management) call(method, path string, object any) {
	t := m.b.t
	t.Helper()
	var body io.Reader
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	target := m.base.Scheme + "://" + m.base.Host + "/api/" + path
	req, err := http.NewRequest(method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := m.base.User.Password()
	req.SetBasicAuth(m.base.User.Username(), password)
	req.Close = true
	resp, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Errorf("%s /api/%s: %v", method, path, err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		t.Errorf("%s /api/%s: %s %s", method, path, resp.Status, text)
	}
}

// newUser makes a user who may do everything in the bench's vhost and returns
// the AMQP URL that logs in as that user.
func (m management) newUser(name string) string {
	m.b.t.Helper()
	m.put("users/"+url.PathEscape(name), map[string]any{"password": "pass-of-" + name, "tags": ""})
	// Permissions go with their user.
	m.call(http.MethodPut, "permissions/"+url.PathEscape(m.b.vhost())+"/"+url.PathEscape(name),
		map[string]any{"configure": ".*", "write": ".*", "read": ".*"})
	u, err := url.Parse(m.b.url)
	if err != nil {
		m.b.t.Fatal(err)
	}
	u.User = url.UserPassword(name, "pass-of-"+name)
	return u.String()
}

// newPolicy sets a policy for the queues whose names match pattern.
func (m management) newPolicy(name, pattern string, definition map[string]any) {
	m.b.t.Helper()
	m.put("policies/"+url.PathEscape(m.b.vhost())+"/"+url.PathEscape(name),
		map[string]any{"pattern": pattern, "definition": definition, "apply-to": "queues"})
}

// name is a queue name that nobody else uses.
func (b *bench) name() string {
	b.t.Helper()
	q := b.queue("classic", nil)
	b.delete(q)
	return q
}

// exactly is real with every other setting of p kept.
func (b *bench) exactly(p settle.Policy) settle.Policy {
	b.t.Helper()
	q := b.real(p)
	q.EndsSpent = p.EndsSpent
	q.AckOriginal, q.RetryExchange, q.Backoff = p.AckOriginal, p.RetryExchange, p.Backoff
	return q
}

// shortly makes every retry of p a delayed one.
func shortly(p settle.Policy, d time.Duration) settle.Policy {
	p.Backoff = &settle.Backoff{Initial: d, Factor: 1}
	return p
}
