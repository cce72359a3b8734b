package kinds

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// An unsentError is an error that came before a byte of the request was sent:
// the endpoint cannot have seen it.
type unsentError struct {
	err error
	// tunnel says that a proxy had already opened the way to the endpoint.
	tunnel bool
}

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// A trip follows one request through a transport, whose goroutines set it.
type trip struct {
	asked, got, tunnel, reused, answered atomic.Bool
}

type tripKey struct{}

// roundTrip does not use http.Client, which would follow redirects. After an
// error, kept says that the connection had been used before and that nothing has
// come back on it.
func roundTrip(t *http.Transport, req *http.Request) (res *http.Response, kept bool, err error) {
	var p trip
	ctx := context.WithValue(req.Context(), tripKey{}, &p)
	res, err = t.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, p.trace())))
	if err != nil && p.asked.Load() && !p.got.Load() {
		err = &unsentError{err, p.tunnel.Load()}
	}
	return res, err != nil && p.reused.Load() && !p.answered.Load(), err
}

func (p *trip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { p.asked.Store(true); p.got.Store(false) }, // again when the transport tries again
		GotConn: func(info httptrace.GotConnInfo) { p.got.Store(true); p.reused.Store(info.Reused) },

		GotFirstResponseByte: func() { p.answered.Store(true) },
	}
}

// tunnelOpened notes that what follows on the connection comes from the endpoint.
func tunnelOpened(ctx context.Context) {
	if p, ok := ctx.Value(tripKey{}).(*trip); ok {
		p.tunnel.Store(true)
	}
}
