package kinds

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A memoryServer is a server at an address of its own, within the process, so
// that a test can have its clock.
type memoryServer struct {
	conns chan net.Conn
	ended chan struct{}
	last  time.Time // when the last request came
}

// Accept implements [net.Listener].
func (s *memoryServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (s *memoryServer) Close() error { close(s.ended); return nil }

// Addr implements [net.Listener].
func (s *memoryServer) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func (s *memoryServer) dial() net.Conn {
	ours, theirs := net.Pipe()
	s.conns <- theirs
	return ours
}

// serve answers each request after a while, for the way w.
func (s *memoryServer) serve(t *testing.T, w way, pair tls.Certificate) {
	var mu sync.Mutex
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	if !w.h2 {
		server.TLSConfig.NextProtos = []string{"http/1.1"}
	}
	server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if (r.ProtoMajor == 2) != w.h2 {
			t.Errorf("%s arrived", r.Proto)
		}
		mu.Lock()
		s.last = time.Now()
		mu.Unlock()
		time.Sleep(700 * time.Millisecond)
	})
	var serving sync.WaitGroup
	serving.Go(func() {
		if w.tls {
			server.ServeTLS(s, "", "")
		} else {
			server.Serve(s)
		}
	})
	t.Cleanup(func() { server.Close(); serving.Wait() })
}

// namedEndpoint is a hook for hook.test whose connections come from dial.
func namedEndpoint(t *testing.T, w way, ca string, dial dialFunc) *endpoint {
	t.Helper()
	h, addr := httpHandler("http://hook.test/"), "hook.test:80"
	if w.tls {
		h, addr = httpHandler("https://hook.test/"), "hook.test:443"
		h.TLS = &spec.TLS{CAFile: ca}
	}
	e := newHook(t, h, Options{Concurrency: 4}).(*endpoint)
	e.proxy = nil
	e.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if network != "tcp" || to != addr {
			t.Errorf("dialled %s %s, want the name each time", network, to)
		}
		return dial(ctx, network, to)
	}
	if !w.tls {
		e.wire = wireTo(e, "tcp", addr)
	}
	return e
}

// The old server lives on, and no connection to it is ever idle: three calls
// overlap all the time.
func TestRequestsFollowANameToItsNewAddressWithin90Seconds(t *testing.T) {
	t.Parallel()
	overEveryWay(t, func(t *testing.T, w way) {
		synctest.Test(t, func(t *testing.T) {
			a := newAuthority(t)
			pair := a.pair(time.Hour)
			before, after := newMemoryServer(), newMemoryServer()
			before.serve(t, w, pair)
			after.serve(t, w, pair)
			const moves = 30 * time.Second
			start := time.Now()
			e := namedEndpoint(t, w, a.file(), func(context.Context, string, string) (net.Conn, error) {
				if time.Since(start) < moves {
					return before.dial(), nil
				}
				return after.dial(), nil
			})
			var calls sync.WaitGroup
			for i := range 3 {
				calls.Go(func() {
					time.Sleep(time.Duration(i) * 200 * time.Millisecond)
					for time.Since(start) < moves+4*time.Minute {
						if o := handleWith(t, e, w.message()); o.Verdict != hooks.Ack {
							t.Errorf("got %+v, want Ack", o)
						}
					}
				})
			}
			calls.Wait()
			if took := before.last.Sub(start) - moves; took > 90*time.Second {
				t.Errorf("the old address still got requests %v after the change", took)
			}
			if time.Since(after.last) > 2*time.Second {
				t.Error("the new address got no requests at the end")
			}
		})
	})
}

func newMemoryServer() *memoryServer {
	return &memoryServer{conns: make(chan net.Conn), ended: make(chan struct{})}
}

// An address behind which nobody answers, not even with a refusal.
func TestABlackHoleFailsByATimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]struct {
		after  time.Duration
		reason string
	}{
		5 * time.Second:  {5 * time.Second, "timed out after 5s"},
		30 * time.Second: {dialFor, "connecting timed out"},
	} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			t.Parallel()
			for _, w := range ways[:2] {
				synctest.Test(t, func(t *testing.T) {
					e := namedEndpoint(t, w, "", func(ctx context.Context, _, _ string) (net.Conn, error) {
						ctx, cancel := context.WithTimeout(ctx, newDialer().Timeout)
						defer cancel()
						<-ctx.Done()
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
					})
					e.h.Timeout = timeout
					start := time.Now()
					o, err := e.Handle(deadline(t, timeout), w.message())
					if err != nil || o.Verdict != hooks.Failed || o.Reason != want.reason || time.Since(start) != want.after {
						t.Errorf("%s: got %+v, %v after %v, want Failed, %q after %v", w.name, o, err, time.Since(start), want.reason, want.after)
					}
				})
			}
		})
	}
}
