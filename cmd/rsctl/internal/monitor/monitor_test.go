package monitor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var stubMetrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "rsctl_x 1\n") })

// get asks a handler without a network.
func get(h http.Handler, path, accept string) *http.Response {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	ab := []string{"a", "b"}
	up := []runtime.Event{runtime.Connected{Purpose: "consume", Queues: ab}, runtime.Consuming{Queue: "a"}, runtime.Consuming{Queue: "b"}}
	lost := errors.New("connection lost:\n 320 \x1b[31mshutdown")
	tests := []struct {
		name   string
		events []runtime.Event
		status int
		want   string
	}{
		{"nothing has happened yet", nil, 503,
			"queue \"a\" is not consumed: not connected to the broker yet\nqueue \"b\" is not consumed: not connected to the broker yet\n"},
		{"the broker cannot be reached", []runtime.Event{runtime.Disconnected{Purpose: "consume", Queues: ab, Err: errors.New("dial: refused")}}, 503,
			"queue \"a\" is not consumed: no connection to the broker: dial: refused\nqueue \"b\" is not consumed: no connection to the broker: dial: refused\n"},
		{"one queue is consumed, the other not yet", up[:2], 503,
			"queue \"b\" is not consumed: connected to the broker, not subscribed yet\n"},
		{"every queue is consumed", up, 200, "ready\n"},
		{"copies cannot be published for now: they wait, and so do their originals",
			append(up[:3:3], runtime.Disconnected{Purpose: "publish", Err: lost}, runtime.Blocked{Reason: "low on memory"}), 200, "ready\n"},
		{"one queue has lost its consumer", append(up[:3:3], runtime.NotConsuming{Queue: "b", Err: errors.New("queue deleted")}), 503,
			"queue \"b\" is not consumed: queue deleted\n"},
		{"and has it again", append(up[:3:3], runtime.NotConsuming{Queue: "b"}, runtime.Consuming{Queue: "b"}), 200, "ready\n"},
		{"a handler cannot be run", append(up[:3:3], runtime.Paused{Queue: "a", Err: errors.New("./x.sh: no such file")}), 503,
			"queue \"a\" is paused: ./x.sh: no such file\n"},
		{"one of two connections is lost", append(up[:3:3], runtime.Disconnected{Purpose: "consume", Queues: ab[1:], Err: lost}), 503,
			"queue \"b\" is not consumed: no connection to the broker: connection lost: 320 [31mshutdown\n"},
		{"and can again", append(up[:3:3], runtime.Paused{Queue: "a", Err: lost}, runtime.Resumed{Queue: "a"}), 200, "ready\n"},
		{"the connection is lost, in one plain line a queue",
			append(up[:3:3], runtime.NotConsuming{Queue: "a", Err: lost}, runtime.NotConsuming{Queue: "b", Err: lost}, runtime.Disconnected{Purpose: "consume", Queues: ab, Err: lost}), 503,
			"queue \"a\" is not consumed: no connection to the broker: connection lost: 320 [31mshutdown\nqueue \"b\" is not consumed: no connection to the broker: connection lost: 320 [31mshutdown\n"},
		{"a drain is not ready although queues are still consumed", append(up[:3:3], runtime.Draining{Cause: errors.New("interrupted")}), 503,
			"draining: interrupted\n"},
		{"a drain to its end", append(up[:3:3], runtime.Draining{Cause: errors.New("interrupted")}, runtime.NotConsuming{Queue: "a"}), 503,
			"draining: interrupted\nqueue \"a\" is not consumed: stopped\n"},
		{"a queue that nobody has asked about changes nothing", append(up[:3:3], runtime.Paused{Queue: "stray", Err: lost}), 200, "ready\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := NewStatus([]string{"a", "b"})
			for _, e := range tt.events {
				s.Observe(e)
			}
			r := get(Handler(s, stubMetrics), "/readyz", "")
			if text := body(t, r); r.StatusCode != tt.status || text != tt.want {
				t.Errorf("status %d\n%s\nwant %d\n%s", r.StatusCode, text, tt.status, tt.want)
			}
		})
	}
}

func TestReadyzAsJSON(t *testing.T) {
	t.Parallel()
	s := NewStatus([]string{"b", "a"})
	for _, e := range []runtime.Event{
		runtime.Consuming{Queue: "a"}, runtime.Paused{Queue: "a", Err: errors.New("no such file")},
		runtime.NotConsuming{Queue: "b"}, runtime.Draining{Cause: errors.New("interrupted")},
	} {
		s.Observe(e)
	}
	r := get(Handler(s, stubMetrics), "/readyz", "text/html, application/json;q=0.9")
	if got := r.Header.Get("Content-Type"); got != "application/json" || r.StatusCode != 503 {
		t.Errorf("status %d, content type %q", r.StatusCode, got)
	}
	want := `{"ready":false,"draining":"interrupted","queues":[` +
		`{"name":"b","consuming":false,"paused":false,"reason":"stopped"},` +
		`{"name":"a","consuming":true,"paused":true,"reason":"no such file"}]}` + "\n"
	if got := body(t, r); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheOtherPaths(t *testing.T) {
	t.Parallel()
	h := Handler(NewStatus(nil), stubMetrics)
	tests := []struct {
		name, method, path, accept string
		status                     int
		want                       string
	}{
		{"the process is alive", "GET", "/healthz", "", 200, "ok\n"},
		{"the process is alive, as JSON", "GET", "/healthz", "application/json", 200, "{\"status\":\"ok\"}\n"},
		{"an Accept that cannot be read gets text", "GET", "/healthz", ";;;,/", 200, "ok\n"},
		{"metrics come from their handler", "GET", "/metrics", "", 200, "rsctl_x 1\n"},
		{"the root names the paths", "GET", "/", "", 200, "/healthz\n/readyz\n/metrics\n"},
		{"no queue is no reason not to be ready", "GET", "/readyz", "", 200, "ready\n"},
		{"HEAD is answered", "HEAD", "/healthz", "", 200, "ok\n"},
		{"POST is not", "POST", "/healthz", "", 405, "Method Not Allowed\n"},
		{"other paths are not there", "GET", "/debug/pprof/", "", 404, "404 page not found\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequest(tt.method, tt.path, nil)
			req.Header.Set("Accept", tt.accept)
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != tt.status || rec.Body.String() != tt.want {
				t.Errorf("status %d, %q; want %d, %q", rec.Code, rec.Body, tt.status, tt.want)
			}
		})
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func listen(t *testing.T, h http.Handler) *Server {
	t.Helper()
	s, err := Listen(t.Context(), "127.0.0.1:0", h, discard())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAServerServesUntilItIsClosed(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	inner := Handler(NewStatus(nil), stubMetrics)
	s := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		inner.ServeHTTP(w, r)
	}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + s.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, r); text != "ok\n" {
		t.Errorf("got %q", text)
	}
	if _, err := Listen(t.Context(), s.Addr(), stubMetrics, discard()); err == nil {
		t.Error("the address could be bound twice")
	}
	s.Close()
	// Another test may have the port by now.
	if r, err := client.Get("http://" + s.Addr() + "/healthz"); err == nil {
		_ = r.Body.Close()
	}
	if n := served.Load(); n != 1 {
		t.Errorf("it has served %d requests, the last after its end; want 1", n)
	}
}

func TestCloseWaitsForAnAnswerThatIsUnderWay(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}), make(chan struct{})
	s := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-finish
		_, _ = io.WriteString(w, "late\n")
	}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got := make(chan string, 1)
	go func() {
		r, err := client.Get("http://" + s.Addr())
		if err != nil {
			got <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		got <- string(text)
	}()
	<-began
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	close(finish)
	if text := <-got; text != "late\n" {
		t.Errorf("got %q", text)
	}
	<-closed
}

func TestCloseDoesNotWaitForAnIdleOrSilentClient(t *testing.T) {
	t.Parallel()
	s := listen(t, Handler(NewStatus(nil), stubMetrics))
	idle := dial(t, s)
	if _, err := io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(idle).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("got %q, %v", line, err)
	}
	dial(t, s) // says nothing
	began := time.Now()
	s.Close()
	if took := time.Since(began); took > closeTimeout+time.Minute { // these clients stay for ever
		t.Errorf("the close took %v", took)
	}
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(context.Background(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestReadinessNamesQueuesInTheirOrder(t *testing.T) {
	t.Parallel()
	names := []string{"z", "a", "m"}
	var got []string
	for _, q := range NewStatus(names).Readiness().Queues {
		got = append(got, q.Name)
	}
	if !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
}
