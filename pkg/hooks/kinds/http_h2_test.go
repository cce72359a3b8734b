package kinds

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestAnEndpointThatSpeaksHTTP2HasAllCallsOnOneConnection(t *testing.T) {
	t.Parallel()
	const calls = 16
	var conns, requests atomic.Int32
	all := make(chan struct{}) // closed when every call is in flight
	w := way{size: 1, tls: true, h2: true}
	p := w.serve(t, func(http.ResponseWriter, *http.Request) {
		switch requests.Add(1) {
		case 1: // alone: calls that come together at first may each dial
			return
		case calls + 1:
			close(all)
		}
		<-all
	})
	e := p.hook(t).(*endpoint)
	dial := e.dial
	e.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conns.Add(1)
		return dial(ctx, network, addr)
	}
	handleWith(t, e, w.message())
	inParallel(calls, calls, func() {
		if o := handleWith(t, e, w.message()); o.Verdict != hooks.Ack {
			t.Errorf("got %+v, want Ack", o)
		}
	})
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for %d calls in flight, want 1", n, calls)
	}
}

// A severable connection can lose its peer without being told.
type severable struct {
	net.Conn
	severed, closed chan struct{}
	once            sync.Once
}

func (s *severable) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.severed:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (s *severable) Write(p []byte) (int, error) {
	select {
	case <-s.severed:
		return len(p), nil // into the send buffer, for ever
	default:
		return s.Conn.Write(p)
	}
}

func (s *severable) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

func TestAConnectionOfHTTP2WhosePeerHasVanishedIsGivenUpWithinTheCall(t *testing.T) {
	t.Parallel()
	w := way{size: 1, tls: true, h2: true}
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		server := newMemoryServer()
		server.serve(t, w, a.pair(time.Hour))
		severed, conns := make(chan struct{}), 0
		e := namedEndpoint(t, w, a.file(), func(context.Context, string, string) (net.Conn, error) {
			conns++
			if conns > 1 {
				return server.dial(), nil
			}
			return &severable{Conn: server.dial(), severed: severed, closed: make(chan struct{})}, nil
		})
		handleWith(t, e, w.message())
		close(severed)
		o, err := e.Handle(deadline(t, 20*time.Second), w.message())
		if err != nil || o.Verdict != hooks.Ack || conns != 2 {
			t.Errorf("got %+v, %v over %d connections, want Ack over a second one", o, err, conns)
		}
	})
}
