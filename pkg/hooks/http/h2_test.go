package http

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
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
)

var overHTTP2 = ways[3]

func TestHTTP2_AllCallsAreOnOneConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 16
		var requests atomic.Int32
		all := make(chan struct{}) // closed when every call is in flight
		p, e := overHTTP2.start(t, func(http.ResponseWriter, *http.Request) {
			switch requests.Add(1) {
			case 1: // alone: calls that come together at first may each dial
				return
			case calls + 1:
				close(all)
			}
			<-all
		})
		hooktest.Handle(t, e, overHTTP2.message())
		hooktest.InParallel(calls, calls, func() {
			if o := hooktest.Handle(t, e, overHTTP2.message()); o.Verdict != hooks.Ack {
				t.Errorf("got %+v, want Ack", o)
			}
		})
		if n := p.dials(); n != 1 {
			t.Errorf("%d connections for %d calls in flight, want 1", n, calls)
		}
	})
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

func TestHTTP2_ConnectionWhosePeerHasVanishedIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, e := overHTTP2.start(t, func(http.ResponseWriter, *http.Request) {})
		severed, dial := make(chan struct{}), e.dial
		e.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if p.dials() > 1 {
				return c, err
			}
			return &severable{Conn: c, severed: severed, closed: make(chan struct{})}, err
		}
		hooktest.Handle(t, e, overHTTP2.message())
		close(severed)
		o, err := e.Handle(hooktest.Deadline(t, 20*time.Second), overHTTP2.message())
		if err != nil || o.Verdict != hooks.Ack || p.dials() != 2 {
			t.Errorf("got %+v, %v over %d connections, want Ack over a second one", o, err, p.dials())
		}
	})
}
