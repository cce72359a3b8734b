package broker_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func TestCheckWarnsAboutPoliciesThatTheSpecCannotSee(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(
		queue("doubled", func(q *spec.Queue) { q.MaxAttempts, q.DeadLetter = 3, "doubled.dead" }),
		queue("acked", func(q *spec.Queue) {
			q.MaxAttempts, q.DeadLetter, q.RetryOriginal = 3, "doubled.dead", spec.AckOriginal
		}),
		queue("limited", func(q *spec.Queue) { q.Type, q.MaxAttempts, q.DeadLetter = spec.Quorum, 5, "limited.dead" }),
		queue("waits", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl"} }),
	))
	b.apply(top)
	policy := func(name, pattern string, definition map[string]any) {
		b.api(http.MethodPut, "policies/"+b.vhost+"/"+name, map[string]any{"pattern": pattern, "definition": definition})
	}
	policy("dlx", "^(doubled|acked)$", map[string]any{"dead-letter-exchange": "amq.fanout"})
	policy("limit", "^limited$", map[string]any{"delivery-limit": 1})
	policy("short", `^waits\.retry$`, map[string]any{"message-ttl": 100, "max-length": 5})
	policy("gone", `^limited\.dead$`, map[string]any{"expires": 3600000})
	policy("harmless", "^waits$", map[string]any{"max-length": 100})
	tests := []struct {
		queue  string
		state  broker.State
		detail string
	}{
		{"doubled", broker.Warned, `a policy sets dead-letter-exchange "amq.fanout": every retried original also goes there`},
		{"acked", broker.OK, ""},
		{"limited", broker.Warned, "a policy sets delivery-limit 1: messages are spent after 2 attempts instead of 5"},
		{"waits", broker.OK, ""},
		{"waits.retry", broker.Warned, "a policy sets message-ttl 100: delayed retries come back early"},
		{"waits.retry", broker.Warned, "a policy sets max-length 5: delayed retries can be lost"},
		{"limited.dead", broker.Warned, "a policy sets expires"},
	}
	r := b.eventually(top, func(r *broker.Report) bool { return len(warnings(r)) >= 4 })
	for _, tt := range tests {
		want(t, find(t, r, "queue", tt.queue), tt.state, tt.detail)
	}
	if r.Failed() {
		t.Errorf("a warning is no failure: %v", r.Err())
	}
}

func warnings(r *broker.Report) []broker.Finding {
	var out []broker.Finding
	for _, f := range r.Findings {
		if f.State == broker.Warned {
			out = append(out, f)
		}
	}
	return out
}

// eventually checks until the broker has taken over what the test changed.
func (b *bundle) eventually(top *topology.Topology, done func(*broker.Report) bool) *broker.Report {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		r := b.check(top, b.management())
		if done(r) || time.Now().After(deadline) {
			return r
		}
	}
}

func TestAMissingBindingIsSeenThroughTheManagementAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(everything())
	b.apply(top)
	if err := b.channel().QueueUnbind("classic", "a.*", "events", nil); err != nil {
		t.Fatal(err)
	}
	r := b.check(top, b.management())
	want(t, find(t, r, "binding", "events -> classic (a.*)"), broker.Missing, "")
	want(t, find(t, r, "binding", "amq.headers -> classic"), broker.OK, "")
}

func TestAnUnreachableManagementAPIIsOneLineNotAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("q", amqp.Table{"x-queue-type": "classic"})
	top := b.compile(queues(queue("q", nil)))
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer garbage.Close()
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer forbidden.Close()
	for url, detail := range map[string]string{
		"http://" + closedPort(t): "connection refused",
		garbage.URL:               "not that of a management API",
		forbidden.URL:             `login refused for user "watcher"`,
	} {
		b.broker.ManagementURL.Value = strings.Replace(url, "http://", "http://watcher:hush@", 1)
		r := b.check(top, b.management())
		f := r.Findings[0]
		want(t, f, broker.NotVerified, detail)
		if f.Kind != "management API" || r.Failed() || strings.Contains(f.String(), "hush") {
			t.Errorf("%s, failed %t", f, r.Failed())
		}
		want(t, find(t, r, "queue", "q"), broker.OK, "")
	}
}

func TestNewManagement(t *testing.T) {
	t.Parallel()
	text := func(s string) spec.Text { return spec.Text{Value: s} }
	if m, err := broker.NewManagement(spec.Broker{URL: text("amqp://localhost")}); m != nil || err != nil {
		t.Errorf("without a URL: %v, %v", m, err)
	}
	for _, bad := range []string{"localhost:15672", "ftp://host", "http://", "http://user:s3cret@ho st"} {
		_, err := broker.NewManagement(spec.Broker{URL: text("amqp://localhost"), ManagementURL: text(bad)})
		var refusal *broker.Refusal
		if !errors.As(err, &refusal) || strings.Contains(err.Error()+refusal.Hint, "s3cret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTheManagementAPIGetsItsOwnCredentialsElseThoseOfTheBroker(t *testing.T) {
	t.Parallel()
	type login struct{ user, password, path string }
	got := make(chan login, 8)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got <- login{user, password, r.URL.EscapedPath()}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer api.Close()
	b := setup(t)
	top := &topology.Topology{}
	for url, want := range map[string]login{
		api.URL + "/rabbit/": {"guest", "guest", "/rabbit/api/queues/" + b.vhost},
		strings.Replace(api.URL, "http://", "http://watcher:p%40ss@", 1): {"watcher", "p@ss", "/api/queues/" + b.vhost},
	} {
		b.broker.ManagementURL.Value = url
		b.check(top, b.management())
		if have := <-got; have != want {
			t.Errorf("%+v, want %+v", have, want)
		}
	}
}

// A password goes to the address in the spec and to no other, whatever that says.
func TestTheManagementClientFollowsNoRedirectWithAPassword(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	b := setup(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The same host: there net/http would keep the Authorization header.
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, status)
		}))
		b.broker.ManagementURL.Value = strings.Replace(api.URL, "http://", "http://watcher:hush@", 1)
		f := b.check(&topology.Topology{}, b.management()).Findings[0]
		want(t, f, broker.NotVerified, fmt.Sprintf("HTTP status %d: redirects are not followed", status))
		if strings.Contains(f.String(), "hush") {
			t.Errorf("%s", f)
		}
		api.Close()
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
