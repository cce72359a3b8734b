package http

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange/exchangetest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// unread is an endpoint that keeps connections and never reads a body: what it
// finds there is its next request. It refuses what has an id beginning with
// victim, and likes everything else.
type unread struct {
	evil, connections atomic.Int32
	mute              bool // what it cannot read it answers as HTTP/0.9 has it
}

func (u *unread) serve(c net.Conn) {
	u.connections.Add(1)
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == 0xa0 || r == 0xfffd })
		if len(words) == 0 {
			continue
		}
		if len(words) == 1 || words[0] != "HEAD" && !strings.ContainsAny(words[1][:1], "/h") {
			if !u.mute {
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			} else {
				io.WriteString(c, "<!DOCTYPE HTML>\n<p>Bad request syntax\n")
			}
			return
		}
		victim := false
		for strings.Contains(strings.ToUpper(line), "HTTP/1.") { // has headers
			header, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if strings.TrimSpace(header) == "" {
				break
			}
			victim = victim || strings.HasPrefix(strings.ToLower(header), "rsctl-message-id: victim")
		}
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		switch {
		case strings.Contains(words[1], "/evil"), words[0] == "HEAD":
			u.evil.Add(1)
		case victim:
			answer = "HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\n\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// acceptTLS is acceptEach over TLS.
func acceptTLS(t *testing.T, a *authority, f func(c net.Conn)) (addr string) {
	t.Helper()
	conf := &tls.Config{Certificates: []tls.Certificate{a.pair(3600e9)}, NextProtos: []string{"http/1.1"}}
	return acceptEach(t, func(c net.Conn) {
		secure := tls.Server(c, conf)
		defer secure.Close()
		f(secure)
	})
}

// overHTTP1 runs the test for each way of sending over HTTP/1.1 through a real
// socket: make builds an endpoint that f serves, and pad makes a body of the size
// that goes this way.
func overHTTP1(t *testing.T, test func(t *testing.T, make func(f func(net.Conn), edit ...func(*spec.Handler)) *endpoint, pad func(string) []byte)) {
	for _, w := range ways[:3] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			build := func(f func(net.Conn), edit ...func(*spec.Handler)) *endpoint {
				var h *spec.Handler
				if w.tls {
					a := newAuthority(t)
					h = httpHandler("https://" + acceptTLS(t, a, f) + "/hook")
					h.TLS = &spec.TLS{CAFile: a.file()}
				} else {
					h = httpHandler("http://" + acceptEach(t, f) + "/hook")
				}
				for _, e := range edit {
					e(h)
				}
				return newHook(t, h, setup.Options{Concurrency: 4}).(*endpoint)
			}
			pad := func(body string) []byte {
				if w.size > len(body) {
					body = strings.Repeat(" ", w.size-len(body)) + body
				}
				return []byte(body)
			}
			test(t, build, pad)
		})
	}
}

// The answer to what an endpoint finds in a body it has not read settles no other
// message.
func TestLeftovers_BodyDoesNotBecomeARequest(t *testing.T) {
	t.Parallel()
	overHTTP1(t, func(t *testing.T, build func(func(net.Conn), ...func(*spec.Handler)) *endpoint, pad func(string) []byte) {
		for name, body := range exchangetest.Smuggled {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				u := unread{mute: len(name)%2 == 0}
				e := build(u.serve)
				for i := range 5 {
					o := hooktest.Handle(t, e, hooks.Message{MessageID: fmt.Sprint("attacker-", i), Body: pad(body)})
					if o.Verdict != hooks.Ack && !strings.Contains(o.Reason, "before the request had been sent") {
						t.Fatalf("the first message: got %+v, want Ack", o)
					}
					for j := range 3 {
						o := hooktest.Handle(t, e, hooks.Message{MessageID: fmt.Sprint("victim-", i, j), Body: pad("")})
						if o.Verdict != hooks.Retry || o.Reason != "HTTP 503 Not Now" {
							t.Fatalf("another message: got %+v, want the answer to it", o)
						}
					}
				}
			})
			t.Run("in a batch: "+name, func(t *testing.T) {
				t.Parallel()
				u := unread{mute: true}
				e := build(u.serve)
				for range 3 {
					got, err := e.HandleBatch(hooktest.Deadline(t, hooktest.Patience), []hooks.Message{{Body: pad("x")}, {Body: pad(body)}})
					if err != nil || got[0].Verdict != hooks.Ack && !strings.Contains(got[0].Reason, "before the request had been sent") {
						t.Fatalf("the batch: got %+v, %v, want Ack", got, err)
					}
					o := hooktest.Handle(t, e, hooks.Message{MessageID: "victim", Body: pad("")})
					if o.Verdict != hooks.Retry || o.Reason != "HTTP 503 Not Now" {
						t.Fatalf("another message: got %+v, want the answer to it", o)
					}
				}
			})
		}
	})
}

// HTTP/2 frames bodies: none can become a request, and none costs the connection
// that all calls share.
func TestLeftovers_BodyCostsNoConnectionOfHTTP2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := exchangetest.Smuggled["a whole request"]
		w := way{name: "HTTP/2", size: len(body), tls: true, h2: true}
		p, e := w.start(t, func(http.ResponseWriter, *http.Request) {})
		const calls = 20
		for range calls {
			if o := hooktest.Handle(t, e, hooks.Message{Body: []byte(body)}); o.Verdict != hooks.Ack {
				t.Errorf("got %+v, want Ack", o)
			}
		}
		// The first cannot know, and the transport dials ahead of a connection that is
		// about to be shared.
		if n := p.dials(); n > calls/2 {
			t.Errorf("%d connections were made for %d calls, want a few that they share", n, calls)
		}
	})
}

// What comes without a request is no answer to the next one.
func TestLeftovers_UnsolicitedAnswersAnswerNothing(t *testing.T) {
	t.Parallel()
	overHTTP1(t, func(t *testing.T, build func(func(net.Conn), ...func(*spec.Handler)) *endpoint, pad func(string) []byte) {
		for _, first := range []string{
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
		} {
			e := build(func(c net.Conn) {
				in := bufio.NewReader(c)
				for answer := first; ; answer = "HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\n\r\n" {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					if req.Header.Get("RSCTL-Message-Id") == "victim" {
						answer = "HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\n\r\n"
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			})
			if o := hooktest.Handle(t, e, hooks.Message{Body: pad("")}); o.Verdict != hooks.Ack {
				t.Errorf("%q: got %+v, want Ack", first, o)
			}
			if o := hooktest.Handle(t, e, hooks.Message{MessageID: "victim", Body: pad("")}); o.Verdict != hooks.Retry || o.Reason != "HTTP 503 Not Now" {
				t.Errorf("%q: the next message: got %+v, want the answer to it", first, o)
			}
		}
	})
}

// A success that comes before the message has been sent is about something else.
func TestLeftovers_AckBeforeTheRequestWasSentIsNone(t *testing.T) {
	t.Parallel()
	const size = 64 << 20 // more than sockets hold
	for status, want := range map[string]hooks.Verdict{
		"200 OK\r\n": hooks.Failed, "500 E\r\nRSCTL-Outcome: ack\r\n": hooks.Failed,
		"413 Too Large\r\n": hooks.Drop, "401 No\r\n": hooks.Retry, "503 Busy\r\n": hooks.Retry,
	} {
		overHTTP1(t, func(t *testing.T, build func(func(net.Conn), ...func(*spec.Handler)) *endpoint, _ func(string) []byte) {
			var connections atomic.Int32
			over := make(chan struct{})
			defer close(over)
			e := build(func(c net.Conn) {
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if connections.Add(1) > 1 {
					io.Copy(io.Discard, req.Body)
					io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
					return
				}
				io.WriteString(c, "HTTP/1.1 "+status+"Content-Length: 0\r\n\r\n")
				<-over
			})
			o := hooktest.Handle(t, e, hooks.Message{Body: make([]byte, size)})
			if o.Verdict != want {
				t.Errorf("%q: got %+v, want verdict %v", status, o, want)
			}
			if want == hooks.Failed {
				hooktest.WantReason(t, o, "before the request had been sent in full")
			}
			if o := hooktest.Handle(t, e, hooks.Message{Body: make([]byte, exchange.MaxSmallBody+1)}); o.Verdict != hooks.Ack || connections.Load() != 2 {
				t.Errorf("%q: then got %+v over %d connections, want Ack over another one", status, o, connections.Load())
			}
		})
	}
}

// shortConn takes a part of a request and has its answer ready.
type shortConn struct {
	net.Conn
	in     io.Reader
	closed atomic.Bool
}

func (c *shortConn) Write(p []byte) (int, error) { return len(p) / 2, io.ErrShortWrite }
func (c *shortConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *shortConn) Close() error                { c.closed.Store(true); return nil }

func TestLeftovers_AckToAPartOfASmallRequestIsNone(t *testing.T) {
	t.Parallel()
	e := newHook(t, httpHandler("http://127.0.0.1/"), setup.Options{}).(*endpoint)
	var c *shortConn
	for status, want := range map[string]hooks.Verdict{"200": hooks.Failed, "413": hooks.Drop} {
		c = &shortConn{in: strings.NewReader("HTTP/1.1 " + status + " Text\r\nContent-Length: 0\r\n\r\n")}
		e.dial = func(context.Context, string, string) (net.Conn, error) { return c, nil }
		if o := hooktest.Handle(t, e, hooks.Message{Body: []byte("x")}); o.Verdict != want || !c.closed.Load() {
			t.Errorf("%s: got %+v, want %v and the connection closed", status, o, want)
		}
	}
}

func TestLeftovers_WithoutKeepAliveEachRequestHasItsConnection(t *testing.T) {
	t.Parallel()
	overHTTP1(t, func(t *testing.T, build func(func(net.Conn), ...func(*spec.Handler)) *endpoint, pad func(string) []byte) {
		var mu sync.Mutex
		var seen []string
		e := build(func(c net.Conn) {
			in := bufio.NewReader(c)
			for n := 1; ; n++ {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				mu.Lock()
				seen = append(seen, fmt.Sprint(n, " ", req.Close))
				mu.Unlock()
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}, func(h *spec.Handler) { h.NoKeepAlive = true })
		for range 3 {
			if o := hooktest.Handle(t, e, hooks.Message{Body: pad("")}); o.Verdict != hooks.Ack {
				t.Errorf("got %+v, want Ack", o)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, ", "); got != "1 true, 1 true, 1 true" {
			t.Errorf("the endpoint saw requests (of their connection, to be closed): %s", got)
		}
	})
}
