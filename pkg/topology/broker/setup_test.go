package broker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// bundle is one test's own vhost on the real broker.
type bundle struct {
	t      *testing.T
	vhost  string
	admin  *url.URL // of the management API, with credentials
	broker spec.Broker
}

// setup makes a vhost that goes with the test. The broker's user needs the tag
// administrator.
func setup(t *testing.T) *bundle {
	t.Helper()
	return setupVhost(t, map[string]any{})
}

func setupVhost(t *testing.T, vhost map[string]any) *bundle {
	t.Helper()
	amqpURL := needURL(t, "RSCTL_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
	admin := needURL(t, "RSCTL_MANAGEMENT_URL", "http://guest:guest@127.0.0.1:15672")
	if admin.User == nil {
		admin.User = amqpURL.User
	}
	b := &bundle{t: t, vhost: unique("vhost"), admin: admin}
	b.api(http.MethodPut, "vhosts/"+b.vhost, vhost)
	t.Cleanup(func() { b.api(http.MethodDelete, "vhosts/"+b.vhost, nil) })
	b.grant(amqpURL.User.Username(), ".*", ".*", ".*")
	amqpURL.Path = "/" + b.vhost
	b.broker = spec.Broker{
		URL:            spec.Text{Value: amqpURL.String(), Source: "test"},
		ManagementURL:  spec.Text{Value: admin.String(), Source: "test"},
		ConnectionName: "rsctl-test",
	}
	return b
}

func needURL(t *testing.T, name, example string) *url.URL {
	t.Helper()
	u, err := url.Parse(os.Getenv(name))
	if err != nil || u.Host == "" {
		t.Fatalf("set %s, for example %s", name, example)
	}
	return u
}

func unique(what string) string {
	return "rsctl-test-" + what + "-" + strings.ToLower(rand.Text()[:12])
}

// api calls the management API and returns the body.
func (b *bundle) api(method, path string, in any) []byte {
	b.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	base := *b.admin
	base.User = nil
	req, err := http.NewRequest(method, base.JoinPath("api").String()+"/"+path, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	password, _ := b.admin.User.Password()
	req.SetBasicAuth(b.admin.User.Username(), password)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatalf("management API: %v", err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		b.t.Fatalf("%s %s: %s %s %v", method, path, res.Status, out, err)
	}
	return out
}

func (b *bundle) grant(user, configure, write, read string) {
	b.t.Helper()
	b.api(http.MethodPut, "permissions/"+b.vhost+"/"+user, map[string]string{"configure": configure, "write": write, "read": read})
}

// limited returns the broker as a new user may use it.
func (b *bundle) limited(configure, write, read string) (string, spec.Broker) {
	b.t.Helper()
	user := unique("user")
	b.api(http.MethodPut, "users/"+user, map[string]string{"password": "s3cret", "tags": ""})
	b.t.Cleanup(func() { b.api(http.MethodDelete, "users/"+user, nil) })
	b.grant(user, configure, write, read)
	u, err := url.Parse(b.broker.URL.Value)
	if err != nil {
		b.t.Fatal(err)
	}
	u.User = url.UserPassword(user, "s3cret")
	return user, spec.Broker{URL: spec.Text{Value: u.String()}, ConnectionName: "rsctl-test"}
}

func (b *bundle) session() *broker.Session { return b.sessionOf(b.broker) }

func (b *bundle) sessionOf(of spec.Broker) *broker.Session {
	b.t.Helper()
	s, err := broker.Open(b.t.Context(), of, "test")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

// channel is for what a test does on the broker by itself.
func (b *bundle) channel() *amqp.Channel {
	b.t.Helper()
	ch, err := b.session().Conn().Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	return ch
}

func (b *bundle) management() *broker.Management {
	b.t.Helper()
	m, err := broker.NewManagement(b.broker)
	if err != nil || m == nil {
		b.t.Fatalf("management: %v", err)
	}
	return m
}

func (b *bundle) server() topology.Server { return b.session().Server() }

func (b *bundle) compile(s spec.Spec) *topology.Topology { return topology.Compile(&s, b.server()) }

func (b *bundle) apply(t *topology.Topology) *broker.Report {
	b.t.Helper()
	r, err := broker.Apply(b.t.Context(), b.session(), t, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bundle) check(t *topology.Topology, m *broker.Management) *broker.Report {
	b.t.Helper()
	r, err := broker.Check(b.t.Context(), b.session(), m, t)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bundle) verify(t *topology.Topology) *broker.Report {
	b.t.Helper()
	r, err := broker.Verify(b.t.Context(), b.session(), t)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// declare makes a durable queue as the test wants it.
func (b *bundle) declare(name string, args amqp.Table) {
	b.t.Helper()
	if _, err := b.channel().QueueDeclare(name, true, false, false, false, args); err != nil {
		b.t.Fatal(err)
	}
}

// arguments are those of a queue, as the broker has them.
func (b *bundle) arguments(queue string) map[string]any {
	b.t.Helper()
	var q struct {
		Arguments map[string]any `json:"arguments"`
	}
	dec := json.NewDecoder(bytes.NewReader(b.api(http.MethodGet, "queues/"+b.vhost+"/"+url.PathEscape(queue), nil)))
	dec.UseNumber()
	if err := dec.Decode(&q); err != nil {
		b.t.Fatal(err)
	}
	return q.Arguments
}

// lines writes a report one finding a line, for comparison.
func lines(r *broker.Report) []string {
	out := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		out[i] = f.String()
	}
	return out
}

// find returns the finding for one object.
func find(t *testing.T, r *broker.Report, kind, name string) broker.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Kind == kind && f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding for %s %q in\n%s", kind, name, strings.Join(lines(r), "\n"))
	return broker.Finding{}
}

// want asserts a finding's state and a part of its detail.
func want(t *testing.T, f broker.Finding, state broker.State, detail string) {
	t.Helper()
	if f.State != state || !strings.Contains(f.Detail, detail) {
		t.Errorf("%s; want %s with %q", f, state, detail)
	}
}

func allIn(t *testing.T, r *broker.Report, states ...broker.State) {
	t.Helper()
	allowed := fmt.Sprint(states)
	for _, f := range r.Findings {
		if !strings.Contains(allowed, string(f.State)) {
			t.Errorf("%s; want one of %s", f, allowed)
		}
	}
}

func queue(name string, change func(*spec.Queue)) spec.Queue {
	q := spec.Queue{Name: name, Type: spec.Classic, Durable: true, RetryOriginal: spec.RejectOriginal}
	if change != nil {
		change(&q)
	}
	return q
}

func queues(list ...spec.Queue) spec.Spec { return spec.Spec{Queues: list} }

// patience bounds every wait, on however busy a machine.
const patience = 2 * time.Minute

// soon bounds what must not hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
