package kinds

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// A dialFunc opens a connection to an address as the endpoint's URL has it: a
// name is resolved anew each time.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// transports hands out the transport of the moment. A transport knows no
// greatest age of a connection: one that is never idle, as that of HTTP/2, would
// never follow a name to its new address. So a new transport takes over once a
// minute.
type transports struct {
	build func() *http.Transport

	mu      sync.Mutex
	current *http.Transport
	born    time.Time
}

func (t *transports) get() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || time.Since(t.born) >= maxAge {
		t.renew()
	}
	return t.current
}

// replace gives up old, whose kept connections have turned out to be dead.
func (t *transports) replace(old *http.Transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == old {
		t.renew()
	}
}

// renew leaves the old transport to the calls in flight, after which its
// connections are closed: at once, or of HTTP/2 after idleFor.
func (t *transports) renew() {
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
	t.current, t.born = t.build(), time.Now()
}

func (t *transports) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}

// newTransport keeps as many connections as calls may be in flight. Responses
// are not decompressed: a small one could become gigabytes.
func (e *endpoint) newTransport(conf *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  e.proxy,
		DialContext:            e.dialTo,
		OnProxyConnectResponse: connectAnswer,
		TLSClientConfig:        conf.Clone(), // a transport adds to it
		TLSHandshakeTimeout:    dialFor,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConnsPerHost:    e.opts.Concurrency,
		IdleConnTimeout:        idleFor,
		DisableCompression:     true,
		DisableKeepAlives:      e.h.NoKeepAlive,
		MaxResponseHeaderBytes: maxResponseHeaders,
	}
}

func (e *endpoint) dialTo(ctx context.Context, network, addr string) (net.Conn, error) {
	if e.socket != "" {
		network, addr = "unix", e.socket
	}
	conn, err := e.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &keptConn{Conn: conn}, nil
}

// once is a transport for a single request.
func (t *transports) once() *http.Transport {
	transport := t.build()
	transport.DisableKeepAlives = true
	return transport
}

// transport sends one request through the transport of the moment. When a kept
// connection ends before the first byte of an answer, the server has closed it
// while it was idle, most likely; and when it answers that it cannot read a
// request, what it could not read may have been left there before. The request is
// then sent once more on another.
func (e *endpoint) transport(ctx context.Context, out *outgoing) (answer, error) {
	transport, p := e.transports.get(), &trip{last: out.last}
	a, err := p.over(transport, e.request(ctx, out))
	switch {
	case ctx.Err() != nil:
		return a, err
	case err != nil && p.lost(err):
		e.transports.replace(transport)
		transport = e.transports.get()
	case err != nil && p.reused.Load() && noAnswer(err):
		transport = e.transports.once()
	case err == nil && p.reused.Load() && aboutLeftovers(a.Response):
		a.close()
		transport = e.transports.once()
	default:
		return a, err
	}
	p = &trip{last: out.last}
	return p.over(transport, e.request(ctx, out))
}
