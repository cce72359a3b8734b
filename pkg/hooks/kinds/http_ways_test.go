package kinds

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
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
	{name: "large over HTTP/1.1", size: maxWireBody + 1},
	{name: "HTTP/1.1 over TLS", size: 1, tls: true},
	{name: "HTTP/2", size: 1, tls: true, h2: true},
}

func (w way) message() hooks.Message { return hooks.Message{Body: make([]byte, w.size)} }

// A peer is a server that can cut the connection of a request.
type peer struct {
	*httptest.Server
	tls *spec.TLS

	mu    sync.Mutex
	conns map[string]net.Conn // by the client's address
}

// serve starts a server for the way; f must be for the protocol of it.
func (w way) serve(t *testing.T, f http.HandlerFunc) *peer {
	t.Helper()
	p := &peer{conns: map[string]net.Conn{}}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n != int64(w.size) || (r.ProtoMajor == 2) != w.h2 {
			t.Errorf("%s with %d bytes arrived", r.Proto, n)
		}
		f(rw, r)
	}))
	p.Listener = &keeping{p.Listener, p}
	p.EnableHTTP2 = w.h2
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	if w.tls {
		p.StartTLS()
		p.tls = &spec.TLS{CAFile: pemFile(t, filepath.Join(t.TempDir(), "ca.pem"), "CERTIFICATE", p.Certificate().Raw)}
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

// keeping remembers what it has accepted.
type keeping struct {
	net.Listener
	p *peer
}

func (k *keeping) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.p.mu.Lock()
		k.p.conns[c.RemoteAddr().String()] = c
		k.p.mu.Unlock()
	}
	return c, err
}

func (p *peer) cut(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[r.RemoteAddr].Close()
}

func (p *peer) hook(t *testing.T) hooks.Hook {
	t.Helper()
	h := httpHandler(p.URL)
	h.TLS = p.tls
	return newHook(t, h, Options{Concurrency: 16})
}

// overEveryWay runs the test for each way of sending.
func overEveryWay(t *testing.T, test func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}
