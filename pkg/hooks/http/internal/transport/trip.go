package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// sentWithin is how long the end of a request may take after its answer has come,
// since two goroutines of the transport see to the two.
const sentWithin = time.Second

// A trip follows one request through a transport, whose goroutines set it.
type trip struct {
	last bool // the connection is not used again

	asked, got, tunnel     atomic.Bool // a connection
	reused, answered       atomic.Bool
	refused                atomic.Bool   // what comes on this connection is not the answer
	early, written, broken atomic.Bool   // the answer, the request
	informational          atomic.Int32  // responses before the answer
	wrote                  chan struct{} // after written or broken
	left                   *atomic.Int64 // bytes of the body that the transport has not taken; nil: not known
	conn                   atomic.Pointer[keptConn]
}

type tripKey struct{}

// over sends the request. It does not use http.Client, which would follow
// redirects.
func (p *trip) over(t *http.Transport, req *http.Request) (exchange.Answer, error) {
	p.wrote = make(chan struct{}, 1)
	if b, ok := req.Body.(*countedBody); ok {
		p.left = b.left
	}
	ctx := context.WithValue(req.Context(), tripKey{}, p)
	res, err := t.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, p.trace())))
	switch {
	case p.refused.Load() && err == nil: // what came is about something else
		a := exchange.Answer{Response: res, Trip: p}
		a.Close()
		return exchange.Answer{}, exchange.ErrUnasked
	case err != nil && p.asked.Load() && !p.got.Load():
		return exchange.Answer{}, &exchange.UnsentError{Err: err, Tunnel: p.tunnel.Load()}
	case err != nil:
		return exchange.Answer{}, err
	}
	if p.behind() {
		p.early.Store(true)
	}
	if p.early.Load() || exchange.EndsUnsure(res) {
		p.spend()
	}
	return exchange.Answer{Response: res, Trip: p}, nil
}

func (p *trip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { // again when the transport tries again
			p.asked.Store(true)
			p.got.Store(false)
			p.forget()
		},
		GotConn: p.gotConn,
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			p.written.Store(info.Err == nil)
			p.broken.Store(info.Err != nil)
			select {
			case p.wrote <- struct{}{}:
			default:
			}
		},
		GotFirstResponseByte: p.gotFirstByte,
		Got1xxResponse:       p.informed,
	}
}

// gotFirstByte is called before the transport keeps the connection for others.
func (p *trip) gotFirstByte() {
	p.answered.Store(true)
	switch c := p.conn.Load(); {
	case c != nil && !c.answers(): // it had come before the request
		p.refused.Store(true)
		p.spend()
	case p.behind():
		p.early.Store(true)
		p.spend()
	}
}

// informed takes an informational response, which is not the answer.
func (p *trip) informed(int, textproto.MIMEHeader) error {
	if p.informational.Add(1) > exchange.MaxInformational {
		return exchange.ErrInformational
	}
	p.early.Store(false)
	if c := p.conn.Load(); c != nil {
		c.spent.Store(p.last)
	}
	return nil
}

// forget drops what is known of an earlier try. HTTP/2 tells of GetConn for some
// tries only: not when it goes on over a connection that was dialled for another
// request. The end of a try before would then stand for that of the last one.
func (p *trip) forget() {
	p.refused.Store(false)
	p.answered.Store(false)
	p.written.Store(false)
	p.broken.Store(false)
}

func (p *trip) gotConn(info httptrace.GotConnInfo) {
	p.forget()
	p.got.Store(true)
	p.reused.Store(info.Reused)
	c := kept(info.Conn)
	p.conn.Store(c)
	if c != nil {
		c.asking.Store(true)
	}
	switch {
	case c == nil:
	case info.Reused && c.spent.Load():
		p.refused.Store(true)
		c.Close()
	case p.last:
		p.spend()
	}
}

// behind reports whether the transport has not taken the whole body yet, so that
// no server can have read it.
func (p *trip) behind() bool { return p.left != nil && p.left.Load() > 0 }

// lost reports, after an error, that what came back was refused, or that the
// connection had been used before, and that either nothing has come back on it or
// the request could not be sent in full, so that what has come back is not about
// it. What is refused may have come on an earlier connection of the same request:
// the transport tries again by itself, and its trace does not say which it means.
func (p *trip) lost(err error) bool {
	var op *net.OpError
	unwritten := !p.written.Load() || errors.As(err, &op) && op.Op == "write"
	return p.refused.Load() || p.reused.Load() && (!p.answered.Load() || unwritten)
}

// Whole implements [exchange.Trip]: it reports whether the request had been sent in
// full when the answer came.
func (p *trip) Whole(ctx context.Context) bool {
	if p.early.Load() || p.written.Load() {
		return !p.early.Load()
	}
	timeout := time.NewTimer(sentWithin)
	defer timeout.Stop()
	for waits := true; waits && !p.written.Load() && !p.broken.Load(); {
		select {
		case <-p.wrote:
		case <-timeout.C:
			waits = false
		case <-ctx.Done():
			waits = false
		}
	}
	if !p.written.Load() {
		p.early.Store(true)
		p.spend()
	}
	return p.written.Load()
}

// spend gives up the connection once the answer has been read.
func (p *trip) spend() {
	if c := p.conn.Load(); c != nil {
		c.spent.Store(true)
	}
}

// End implements [exchange.Trip]: it closes a connection that is not to be used
// again.
func (p *trip) End() {
	if c := p.conn.Load(); c != nil && c.spent.Load() {
		c.Close()
	}
}

// tunnelOpened notes that what follows on the connection comes from the endpoint.
func tunnelOpened(ctx context.Context) {
	if p, ok := ctx.Value(tripKey{}).(*trip); ok {
		p.tunnel.Store(true)
	}
}
