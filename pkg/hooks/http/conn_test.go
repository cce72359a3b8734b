package http

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestHTTPUnavailable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, url, want string }{
		{"a refused connection", "http://" + closedPort(t) + "/", "connection refused"},
		{"a name that does not resolve", "http://no-such-host.invalid/", "host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httpHandler(tt.url)
			h.Headers = []spec.EnvVar{{Name: "Authorization", Value: spec.Text{Value: "Bearer hush"}}}
			_, err := newHook(t, h, setup.Options{}).Handle(t.Context(), hooks.Message{Body: []byte("x")})
			hooktest.WantUnavailable(t, "Handle()", err, []string{"POST " + tt.url, tt.want})
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

func TestHTTPCheck(t *testing.T) {
	t.Parallel()
	here := newHook(t, httpHandler("http://localhost:1/"), setup.Options{}).(hooks.Checker)
	if err := here.Check(t.Context()); err != nil {
		t.Errorf("Check() = %v, want nil: it sends no request", err)
	}
	gone := newHook(t, httpHandler("http://no-such-host.invalid/"), setup.Options{}).(hooks.Checker)
	hooktest.WantUnavailable(t, "Check()", gone.Check(t.Context()), []string{"http://no-such-host.invalid/", "host"})
}

func TestHTTPHidesSecretURLs(t *testing.T) {
	t.Parallel()
	h := httpHandler("http://user:hush@" + closedPort(t) + "/hidden?token=hush")
	h.URL.Source = "${HOOK_URL}"
	_, err := newHook(t, h, setup.Options{}).Handle(t.Context(), hooks.Message{})
	hooktest.WantUnavailable(t, "Handle()", err, []string{"${HOOK_URL}", "connection refused"})
	if text := err.Error(); strings.Contains(text, "hush") || strings.Contains(text, "hidden") || strings.Contains(text, "127.0.0.1") {
		t.Errorf("error %q shows what came from the environment", err)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://other.example"+r.URL.Path+"/")
		w.WriteHeader(301)
	})
	h = httpHandler(s.URL + "/services/hidden")
	h.URL.Source = "${HOOK_URL}"
	o := handle(t, h, hooks.Message{})
	if strings.Contains(o.Reason, "hidden") {
		t.Errorf("reason %q shows what came from the environment", o.Reason)
	}
	hooktest.WantReason(t, o, "other.example")
}

func TestHTTPReset(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	o := handle(t, httpHandler(s.URL), hooks.Message{Body: []byte("x")})
	if o.Verdict != hooks.Failed || o.Reason != "connection reset by peer" {
		t.Errorf("got %+v, want Failed, reset", o)
	}
}

// A server may close a kept connection at the very moment of the next request.
// That must cost neither an attempt nor the message.
func TestHTTPServerClosesKeptConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handled atomic.Int32
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			req, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				io.Copy(io.Discard, req.Body)
				handled.Add(1)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") // and no "Connection: close"
			}
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	hook := newHook(t, httpHandler("http://"+l.Addr().String()), setup.Options{})
	const n = 500
	for i := range n {
		if o := hooktest.Handle(t, hook, hooks.Message{MessageID: fmt.Sprint(i), Body: []byte("x")}); o.Verdict != hooks.Ack {
			t.Fatalf("message %d: got %+v, want Ack", i, o)
		}
	}
	if got := handled.Load(); got != n {
		t.Errorf("the server handled %d requests for %d messages", got, n)
	}
}

func TestHTTPKeepsConnections(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/fails" {
			w.WriteHeader(500)
		}
		io.WriteString(w, strings.Repeat("text\n", 2000))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	for _, path := range []string{"/works", "/fails"} {
		opened.Store(0)
		hook := newHook(t, httpHandler(s.URL+path), setup.Options{Concurrency: 8})
		hooktest.InParallel(8, 400, func() { hooktest.Handle(t, hook, hooks.Message{Body: []byte("x")}) })
		if got := opened.Load(); got > 16 {
			t.Errorf("%s: %d connections for 8 calls in flight", path, got)
		}
	}
}

func pemFile(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	return hooktest.WriteFile(t, path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), 0o600)
}

// A server may refuse a body before it has been sent.
func TestHTTPEarlyAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(413) })
	for _, size := range []int{1 << 10, exchange.MaxSmallBody, exchange.MaxSmallBody + 1, 8 << 20} {
		o := handle(t, httpHandler(s.URL), hooks.Message{Body: make([]byte, size)})
		if o.Verdict != hooks.Drop {
			t.Errorf("%d bytes: got %+v, want Drop", size, o)
		}
	}
}

// proxiedURL makes a re-executed test binary post to a URL; the proxy settings
// of an environment are read only once per process.
const proxiedURL = "RSCTL_TEST_PROXIED_URL"

func postOnce() error {
	hook, err := New(httpHandler(os.Getenv(proxiedURL)), setup.Options{})
	if err != nil {
		return err
	}
	if err := hook.(hooks.Checker).Check(context.Background()); err != nil {
		return err
	}
	o, err := hook.Handle(context.Background(), hooks.Message{Body: []byte("x")})
	if err == nil && o.Verdict != hooks.Ack {
		err = errors.New(o.Reason)
	}
	return err
}

func TestHTTPProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.String() })
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), proxiedURL+"=http://endpoint.invalid/hook", "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := <-asked; got != "http://endpoint.invalid/hook" {
		t.Errorf("the proxy was asked for %s", got)
	}
}

func TestHandle_AnswerAfterTheDeadlineDoesNotAck(t *testing.T) {
	t.Parallel()
	e := newHook(t, httpHandler("http://127.0.0.1/"), setup.Options{}).(*endpoint)
	ctx, cancel := context.WithCancel(t.Context())
	e.plain, e.transport = nil, lateAnswer{cancel}
	o, err := e.Handle(ctx, hooks.Message{Body: []byte("x")})
	if err != nil || o.Verdict != hooks.Failed {
		t.Errorf("got %+v, %v, want Failed: the call was over when the answer came", o, err)
	}
}

// lateAnswer says 200 just after the call has been given up.
type lateAnswer struct{ giveUp context.CancelFunc }

func (l lateAnswer) Post(context.Context, *exchange.Request) (exchange.Answer, error) {
	l.giveUp()
	return exchange.Answer{Response: &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}}, nil
}

func (l lateAnswer) Close() {}
