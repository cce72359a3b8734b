package http

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A way is one of the ways by which a request is sent.
type way struct {
	name    string
	tls, h2 bool
	size    int // of a body that goes this way
}

var ways = []way{
	{name: "small over HTTP/1.1", size: 1},
	{name: "large over HTTP/1.1", size: exchange.MaxSmallBody + 1},
	{name: "HTTP/1.1 over TLS", size: 1, tls: true},
	{name: "HTTP/2", size: 1, tls: true, h2: true},
}

func (w way) message() hooks.Message { return hooks.Message{Body: make([]byte, w.size)} }

// overEveryWay runs the test for each way of sending, with a clock of its own:
// on a busy machine no connection grows old by itself.
func overEveryWay(t *testing.T, test func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, w) })
		})
	}
}

// A peer is a server within the process that can cut the connection of a request.
type peer struct {
	dialled chan net.Conn
	ended   chan struct{}

	mu    sync.Mutex
	conns map[string]net.Conn // by the client's address
}

// serve starts a server for the way.
func (w way) serve(t *testing.T, pair tls.Certificate, f http.HandlerFunc) *peer {
	t.Helper()
	p := &peer{dialled: make(chan net.Conn), ended: make(chan struct{}), conns: map[string]net.Conn{}}
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}, ErrorLog: log.New(io.Discard, "", 0)}
	if !w.h2 {
		server.TLSConfig.NextProtos = []string{"http/1.1"}
	}
	server.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n != int64(w.size) || (r.ProtoMajor == 2) != w.h2 {
			t.Errorf("%s with %d bytes arrived", r.Proto, n)
		}
		f(rw, r)
	})
	var serving sync.WaitGroup
	serving.Go(func() {
		if w.tls {
			server.ServeTLS(p, "", "")
		} else {
			server.Serve(p)
		}
	})
	t.Cleanup(func() {
		server.Close()
		serving.Wait()
		time.Sleep(10 * time.Second) // of the bubble: TLS gives a good-bye that nobody reads 5 s
	})
	return p
}

// addressed is a connection whose client has an address of its own.
type addressed struct {
	net.Conn
	client net.Addr
}

// RemoteAddr implements [net.Conn].
func (a addressed) RemoteAddr() net.Addr { return a.client }

// dial implements [dialFunc].
func (p *peer) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.mu.Lock()
	client := &net.UnixAddr{Name: fmt.Sprint("client ", len(p.conns))}
	p.conns[client.String()] = theirs
	p.mu.Unlock()
	select {
	case p.dialled <- addressed{theirs, client}:
		return ours, nil
	case <-p.ended: // a transport may dial ahead of its need
		return nil, net.ErrClosed
	}
}

// dials is how many connections there have been.
func (p *peer) dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *peer) cut(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[r.RemoteAddr].Close()
}

// Accept implements [net.Listener].
func (p *peer) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *peer) Close() error { close(p.ended); return nil }

// Addr implements [net.Listener].
func (p *peer) Addr() net.Addr { return &net.UnixAddr{Name: "peer"} }

// start serves f, and returns a hook that posts to it.
func (w way) start(t *testing.T, f http.HandlerFunc) (*peer, *endpoint) {
	t.Helper()
	a := newAuthority(t)
	p := w.serve(t, a.pair(time.Hour), f)
	return p, w.endpoint(t, a, p.dial)
}

// endpoint is a hook for hook.test whose connections come from dial.
func (w way) endpoint(t *testing.T, a *authority, dial dialFunc) *endpoint {
	t.Helper()
	h, addr := httpHandler("http://hook.test/"), "hook.test:80"
	if w.tls {
		h, addr = httpHandler("https://hook.test/"), "hook.test:443"
		h.TLS = &spec.TLS{CAFile: a.file()}
	}
	e := newHook(t, h, setup.Options{Concurrency: 16}).(*endpoint)
	e.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	e.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if network != "tcp" || to != addr {
			t.Errorf("dialled %s %s, want the name each time", network, to)
		}
		return dial(ctx, network, to)
	}
	if !w.tls {
		e.plain = e.plainTo("tcp", addr)
	}
	return e
}
