package http

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func httpHandler(url string) *spec.Handler {
	return &spec.Handler{Kind: spec.HTTP, URL: spec.Text{Value: url, Source: url}, Timeout: 30 * time.Second}
}

// serve starts a server; it ends after the hooks that use it.
func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// serveRaw answers every request, each on its own connection, with exactly
// these bytes.
func serveRaw(t *testing.T, answer string) (url string) {
	t.Helper()
	return "http://" + acceptEach(t, func(c net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, answer)
		}
	}) + "/"
}

func overHTTP(t *testing.T) hooktest.Kind {
	return endpointUnderTest(t, serve(t, behave), nil)
}

func overHTTPS(t *testing.T) hooktest.Kind {
	s := httptest.NewTLSServer(http.HandlerFunc(behave))
	t.Cleanup(s.Close)
	ca := pemFile(t, filepath.Join(t.TempDir(), "ca.pem"), "CERTIFICATE", s.Certificate().Raw)
	return endpointUnderTest(t, s, &spec.TLS{CAFile: ca})
}

func TestEndpoint_Conforms(t *testing.T) {
	t.Run("HTTP", func(t *testing.T) { hooktest.Conform(t, overHTTP(t)) })
	t.Run("HTTPS", func(t *testing.T) { hooktest.Conform(t, overHTTPS(t)) })
}

func TestEndpoint_ConformsForBatches(t *testing.T) {
	t.Parallel()
	hooktest.ConformBatch(t, overHTTP(t))
}

// behave serves what conform asks for.
func behave(w http.ResponseWriter, r *http.Request) {
	switch body, _ := io.ReadAll(r.Body); r.URL.Path {
	case "/answers":
		w.Header().Set("RSCTL-Outcome", string(body))
	case "/hangs":
		<-r.Context().Done()
	case "/floods":
		for chunk := make([]byte, 1<<16); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case "/babbles":
		w.Header().Set("RSCTL-Outcome", "all good")
	}
}

func endpointUnderTest(t *testing.T, s *httptest.Server, conf *spec.TLS) hooktest.Kind {
	build := func(url string) hooks.Hook {
		h := httpHandler(url)
		h.TLS = conf
		return newHook(t, h, setup.Options{Concurrency: 32})
	}
	scheme, _, _ := strings.Cut(s.URL, "://")
	return hooktest.Kind{
		Answers: build(s.URL + "/answers"),
		Hangs:   build(s.URL + "/hangs"),
		Floods:  build(s.URL + "/floods"),
		Babbles: build(s.URL + "/babbles"),
		Absent:  build(scheme + "://" + closedPort(t) + "/"),
	}
}

// closedPort is an address where nobody listens, nor can before the test ends:
// the port is taken.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	syscall.CloseOnExec(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", addr.(*syscall.SockaddrInet4).Port)
}

func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	verdicts := map[hooks.Verdict][]int{
		hooks.Ack:    {200, 201, 202, 204, 205, 206, 299},
		hooks.Drop:   {400, 410, 411, 413, 414, 415, 422, 431},
		hooks.Retry:  {500, 501, 502, 503, 504, 599},
		hooks.Failed: {300, 301, 302, 303, 304, 307, 308, 101, 600, 999},
	}
	for code := 400; code <= 499; code++ { // what is not about the message is about the endpoint
		if !slices.Contains(verdicts[hooks.Drop], code) {
			verdicts[hooks.Retry] = append(verdicts[hooks.Retry], code)
		}
	}
	for want, codes := range verdicts {
		for _, code := range codes {
			t.Run(fmt.Sprintf("%d is %d", code, want), func(t *testing.T) {
				t.Parallel()
				url := serveRaw(t, fmt.Sprintf("HTTP/1.1 %d Text\r\nContent-Length: 0\r\n\r\n", code))
				o := handle(t, httpHandler(url), hooks.Message{Body: []byte("x")})
				if o.Verdict != want {
					t.Errorf("got %+v, want verdict %d", o, want)
				}
				if want != hooks.Ack {
					hooktest.WantReason(t, o, fmt.Sprint(code))
				}
			})
		}
	}
}

func TestHTTPOddAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		want   hooks.Verdict
		reason string
	}{
		"early hints come before the answer": {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", hooks.Ack, ""},
		"100 comes before the answer":        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", hooks.Ack, ""},
		"garbage instead of a status line":   {"hello\x1b[2J there\r\n\r\n", hooks.Failed, "malformed HTTP"},
		"a status that is no number":         {"HTTP/1.1 abc Text\r\n\r\n", hooks.Failed, "malformed HTTP"},
		"nothing at all":                     {"", hooks.Failed, "closed the connection without an answer"},
		"half a header":                      {"HTTP/1.1 200 OK\r\nContent-Le", hooks.Failed, "malformed MIME header"},
		"success whose body breaks off":      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", hooks.Ack, ""},
		"a failure whose body breaks off":    {"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf", hooks.Retry, "HTTP 500 Oops: half"},
		"the body's first line is told":      {"HTTP/1.1 422 Unprocessable\r\n\r\n\n no \x1b stock \r\nmore", hooks.Drop, `HTTP 422 Unprocessable: no \x1b stock`},
		"an encoded body is not":             {"HTTP/1.1 400 Bad\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", hooks.Drop, "HTTP 400 Bad"},
		"nothing but early hints":            {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20), hooks.Failed, "informational"},
		"endless headers":                    {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", hooks.Failed, "exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := handle(t, httpHandler(serveRaw(t, tt.answer)), hooks.Message{Body: []byte("x")})
			if o.Verdict != tt.want || len(o.Reason) > message.MaxReason || strings.Contains(o.Reason, "\x1b") {
				t.Errorf("got %+v, want verdict %d", o, tt.want)
			}
			hooktest.WantReason(t, o, tt.reason)
		})
	}
}

func TestHTTPOverrides(t *testing.T) {
	t.Parallel()
	rules := []spec.CodeRule{
		{From: 409, To: 409, Outcome: spec.Outcome{Kind: "ack"}},
		{From: 500, To: 509, Outcome: spec.Outcome{Kind: "retry_after", Delay: time.Minute}},
		{From: 302, To: 302, Outcome: spec.Outcome{Kind: "drop"}},
	}
	for _, tt := range []struct {
		name, status, header string
		want                 hooks.Outcome
	}{
		{"a rule decides", "409 C", "", hooks.Outcome{Verdict: hooks.Ack}},
		{"a rule of a range decides", "503 U", "", hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Minute, Reason: "HTTP 503 U"}},
		{"a rule comes before the redirect", "302 F", "", hooks.Outcome{Verdict: hooks.Drop, Reason: "HTTP 302 F"}},
		{"a status without a rule keeps its default", "404 N", "", hooks.Outcome{Verdict: hooks.Retry, Reason: "HTTP 404 N"}},
		{"RSCTL-Outcome comes before the rule", "409 C", "RSCTL-Outcome: retry_after 30s bank is closed\r\n",
			hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 30 * time.Second, Reason: "bank is closed"}},
		{"RSCTL-Outcome comes before success", "200 OK", "rsctl-outcome: drop\r\n", hooks.Outcome{Verdict: hooks.Drop, Reason: "HTTP 200 OK"}},
		{"RSCTL-Outcome can ack a failure", "500 E", "RSCTL-Outcome: ack\r\n", hooks.Outcome{Verdict: hooks.Ack}},
		{"a malformed RSCTL-Outcome is a failure", "200 OK", "RSCTL-Outcome: retry_after 30\r\n",
			hooks.Outcome{Reason: `malformed RSCTL-Outcome: delay "30" is not a duration such as 30s: missing unit`}},
		{"two of them are a failure", "200 OK", "RSCTL-Outcome: ack\r\nRSCTL-Outcome: ack\r\n",
			hooks.Outcome{Reason: "malformed RSCTL-Outcome: sent more than once"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httpHandler(serveRaw(t, "HTTP/1.1 "+tt.status+"\r\nContent-Length: 0\r\n"+tt.header+"\r\n"))
			h.Statuses = rules
			if got := handle(t, h, hooks.Message{}); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestHTTPRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name, value string
		want        time.Duration // 0: a plain retry
	}{
		{"seconds", "3", 3 * time.Second},
		{"seconds with spaces", " 3 ", 3 * time.Second},
		{"a date, by the server's own clock", date(3 * time.Second), 3 * time.Second},
		{"a date in the past", date(-time.Hour), 0},
		{"zero", "0", 0},
		{"a negative number", "-5", 0},
		{"a signed number", "+5", 0},
		{"garbage", "soon", 0},
		{"nothing", "", 0},
		{"31 years, capped", "999999999", time.Hour},
		{"more than a number holds, capped", strings.Repeat("9", 40), time.Hour},
		{"a far date, capped", date(24 * time.Hour), time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []string{"429 Too Many Requests", "503 Service Unavailable"} {
				url := serveRaw(t, fmt.Sprintf("HTTP/1.1 %s\r\nDate: %s\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", status, date(0), tt.value))
				got := handle(t, httpHandler(url), hooks.Message{})
				want := hooks.Outcome{Verdict: hooks.RetryAfter, Delay: tt.want, Reason: "HTTP " + status}
				if tt.want == 0 {
					want.Verdict = hooks.Retry
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		})
	}
	t.Run("the cap is the spec's", func(t *testing.T) {
		t.Parallel()
		h := httpHandler(serveRaw(t, "HTTP/1.1 503 U\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"))
		h.MaxRetryAfter = 10 * time.Second
		if got := handle(t, h, hooks.Message{}); got.Delay != h.MaxRetryAfter {
			t.Errorf("delay = %v, want %v", got.Delay, h.MaxRetryAfter)
		}
	})
	t.Run("other statuses have none", func(t *testing.T) {
		t.Parallel()
		url := serveRaw(t, "HTTP/1.1 500 E\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n")
		if got := handle(t, httpHandler(url), hooks.Message{}); got.Verdict != hooks.Retry {
			t.Errorf("got %+v, want Retry", got)
		}
	})
}

func TestHTTPRedirect(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, r.Method+" "+r.URL.Path)
				if r.URL.Path != "/new" {
					w.Header().Set("Location", "http://user:hush@new.example/new?token=hush")
					w.WriteHeader(code)
				}
			})
			o := handle(t, httpHandler(s.URL), hooks.Message{Body: []byte("x")})
			if o.Verdict != hooks.Failed || strings.Contains(o.Reason, "hush") {
				t.Errorf("got %+v, want Failed without secrets", o)
			}
			hooktest.WantReason(t, o, fmt.Sprint(code), `"http://new.example/new"`, "change the URL")
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(seen) != "[POST /]" {
				t.Errorf("the server saw %q, want one POST", seen)
			}
		})
	}
}

func TestHTTPHugeResponses(t *testing.T) {
	const calls, most = 10, 64 << 20 // bytes a call: what sockets hold, and more
	bomb := bytes.Repeat([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), 100)
	for _, tt := range []struct {
		name     string
		status   int
		length   string
		encoding string
		want     hooks.Verdict
	}{
		{"success of 2 GB", 200, "2000000000", "", hooks.Ack},
		{"success without an end", 200, "", "", hooks.Ack},
		{"a failure of 2 GB", 500, "2000000000", "", hooks.Retry},
		{"a failure without an end", 500, "", "", hooks.Retry},
		{"something to inflate", 200, "", "gzip", hooks.Ack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var written atomic.Int64
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for key, value := range map[string]string{"Content-Length": tt.length, "Content-Encoding": tt.encoding} {
					if value != "" {
						w.Header().Set(key, value)
					}
				}
				w.WriteHeader(tt.status)
				for {
					n, err := w.Write(bomb)
					written.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			hook := newHook(t, httpHandler(s.URL), setup.Options{})
			for range calls {
				if o := hooktest.Handle(t, hook, hooks.Message{}); o.Verdict != tt.want || len(o.Reason) > message.MaxReason {
					t.Errorf("got %+v, want verdict %d", o, tt.want)
				}
			}
			s.Close()
			if n := written.Load(); n > calls*most {
				t.Errorf("%d MiB of %d answers were taken", n>>20, calls)
			}
		})
	}
}

func TestHTTPTimeouts(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	hook, overdue := newHook(t, httpHandler(s.URL), setup.Options{}).(*endpoint), hooktest.NewOverdue()
	dial := hook.dial
	hook.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &headConn{Conn: conn, behind: sync.OnceFunc(overdue.Pass)}, err
	}
	o, err := hook.Handle(overdue, hooks.Message{Body: []byte("x")})
	if err != nil || o.Verdict != hooks.Retry || o.Reason != "HTTP 500 Internal Server Error" {
		t.Errorf("a body that never ends: got %+v, %v, want what the status says", o, err)
	}
}

// headConn tells when the head of an answer has been read and more is asked for.
type headConn struct {
	net.Conn
	read   []byte
	behind func()
}

func (c *headConn) Read(p []byte) (int, error) {
	if bytes.Contains(c.read, []byte("\r\n\r\n")) {
		c.behind()
	}
	n, err := c.Conn.Read(p)
	c.read = append(c.read, p[:n]...)
	return n, err
}
