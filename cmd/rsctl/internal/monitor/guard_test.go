package monitor

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestOnlyHostsThatTheServerHasAreAnswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		host, path string
		names      []string
		want       int
	}{
		{"127.0.0.1:9419", "/readyz", nil, 200},
		{"10.1.2.3:9419", "/metrics", nil, 200},
		{"[::1]:9419", "/metrics", nil, 200},
		{"[fe80::1]", "/metrics", nil, 200},
		{"localhost:9419", "/readyz", nil, 200},
		{"LOCALHOST.", "/readyz", nil, 200},
		{"", "/readyz", nil, 200},
		{"evil.example", "/readyz", nil, 421},
		{"evil.example:9419", "/metrics", nil, 421},
		{"127.0.0.1.evil.example", "/metrics", []string{"orders.shop.svc"}, 421},
		{"localhost.evil.example", "/", nil, 421},
		{"evil.example", "/healthz", nil, 200},
		{"Orders.shop.svc:9419", "/metrics", []string{"orders.shop.svc"}, 200},
		{"evil.example", "/metrics", []string{"*"}, 200},
	} {
		var log strings.Builder
		h := OnlyHosts(Handler(NewStatus(nil), stubMetrics), tt.names, slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			req := httptest.NewRequest(http.MethodGet, tt.path, nil)
			req.Host = tt.host
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != tt.want || tt.want == 421 && !strings.Contains(rec.Body.String(), "--listen-host") {
				t.Errorf("%s of %q: status %d, %q; want %d", tt.path, tt.host, rec.Code, rec.Body, tt.want)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 0 && tt.want == 200 || n != 1 && tt.want == 421 {
			t.Errorf("%s of %q: %d lines in the log", tt.path, tt.host, n)
		}
	}
}

// ask sends half a request, or a whole one, and returns the connection.
func ask(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	c := dial(t, s)
	_, _ = io.WriteString(c, text)
	return c
}

const request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

func TestConnectionsAreBoundedAndKeepNobodyOut(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"silent": "", "slow": "GET /heal", "idle": request} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, Handler(NewStatus(nil), stubMetrics))
			t.Cleanup(s.Close)
			for range 5 * maxConns {
				ask(t, s, text)
			}
			c := ask(t, s, request)
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				t.Errorf("got %q, %v", line, err)
			}
			s.conns.mu.Lock()
			defer s.conns.mu.Unlock()
			if n := len(s.conns.conns); n > maxConns {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

func TestAnAnswerUnderWayIsNotCutForANewConnection(t *testing.T) {
	t.Parallel()
	c := newCrowd(2)
	pipe := func() net.Conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		return a
	}
	isOpen := func(conn net.Conn) bool { return conn.SetDeadline(time.Time{}) == nil }
	a, b, late := pipe(), pipe(), pipe()
	for _, conn := range []net.Conn{a, b} {
		c.state(conn, http.StateNew)
		req := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(c.context(context.Background(), conn))
		c.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(nil, req)
	}
	c.state(late, http.StateNew)
	if isOpen(late) || !isOpen(a) || !isOpen(b) {
		t.Error("the new connection was to be refused")
	}
	c.conns[a].since = time.Now().Add(-patientFor)
	next := pipe()
	c.state(next, http.StateNew)
	if isOpen(a) || !isOpen(next) {
		t.Error("the answer that nobody takes was to go")
	}
}
