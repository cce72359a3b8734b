// Package http is the kind of hook that posts each delivery to an endpoint. The
// answer's status decides, unless a header or, for a batch, the body says more. An
// endpoint that cannot have seen the request is a [hooks.UnavailableError].
//
// What a request says and what an answer means is here; how both are carried is in
// packages below: exchange, plainhttp and transport.
package http

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// endpoint posts each delivery to one URL over a pool of kept connections.
type endpoint struct {
	h    *spec.Handler
	opts setup.Options
	url  *url.URL // without userinfo

	socket      string           // path of a Unix socket; "": none
	host        string           // Host header; "": as the URL
	contentType string           // of messages without one
	fixed       []exchange.Field // of every request
	signers     signers

	dial      dialFunc
	proxy     func(*http.Request) (*url.URL, error) // nil: none
	transport poster
	plain     poster // of small requests; nil: the transport takes all
	warn      *rate.Sometimes
}

// A dialFunc opens a connection to an address as the endpoint's URL has it: a
// name is resolved anew each time.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// A poster is a way of sending a request.
type poster interface {
	Post(ctx context.Context, out *exchange.Request) (exchange.Answer, error)
	Close()
}

// New builds the hook of an http handler. It connects to nothing before the first
// delivery. It has to be closed.
func New(h *spec.Handler, o setup.Options) (hooks.Hook, error) {
	socket, u, err := target(h.URL.Value)
	if err != nil {
		return nil, fmt.Errorf("handler url %q: %w", message.Printable(h.URL.String(), 256), err)
	}
	e := &endpoint{h: h, opts: o.WithDefaults(h.Dir), url: u, socket: socket, warn: &rate.Sometimes{Interval: time.Minute}}
	if err := e.setHeaders(); err != nil {
		return nil, err
	}
	if e.signers, err = newSigners(h.Secrets); err != nil {
		return nil, err
	}
	if err := e.signers.checkNames(h.Headers); err != nil {
		return nil, err
	}
	e.url.User, e.url.Fragment = nil, ""
	e.url.RawQuery = strings.ReplaceAll(e.url.RawQuery, " ", "%20")
	conf, err := tlsConfig(h.TLS)
	if err != nil {
		return nil, err
	}
	if e.url.Scheme == "https" {
		// The system's authorities are read once in the life of a process: at the
		// first connection they would be missing for ever if that came at a moment
		// without a free file descriptor.
		_, _ = x509.SystemCertPool()
	}
	e.connect(conf)
	return e, nil
}

// Handle implements [hooks.Hook].
func (e *endpoint) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}, nil
	}
	res, err := e.send(ctx, &m)
	if err != nil {
		return e.failure(ctx, err)
	}
	defer res.Close()
	// An endpoint that ends its work because we have hung up may still say 200,
	// and over TLS that answer can come in while the connection is closing.
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}, nil
	}
	if err := e.proxySays(res.Response); err != nil {
		return hooks.Outcome{}, err
	}
	o := trusted(ctx, &res, e.outcome(res.Response))
	if e.h.Reply && o.Verdict == hooks.Ack {
		return e.withReply(ctx, res.Response, o), nil
	}
	return e.explained(res.Response, o), nil
}

// explained reads what is left of res and adds the reason of an outcome that has
// none of its own.
func (e *endpoint) explained(res *http.Response, o hooks.Outcome) hooks.Outcome {
	line := firstLine(res)
	if o.Verdict != hooks.Ack && o.Reason == "" {
		o.Reason = message.JoinReason(exchange.StatusLine(res), line)
	}
	return o
}

// send posts m.
func (e *endpoint) send(ctx context.Context, m *hooks.Message) (exchange.Answer, error) {
	return e.post(ctx, e.fields(m), m.Body, func() string { return webhookID(m) })
}

// post sends a request, signed with the id if there is a secret.
func (e *endpoint) post(ctx context.Context, fields []exchange.Field, body []byte, id func() string) (exchange.Answer, error) {
	if len(e.signers) > 0 {
		var err error
		if fields, err = e.signers.sign(fields, id(), body, time.Now()); err != nil {
			return exchange.Answer{}, err
		}
	}
	out := exchange.Request{Fields: fields, Body: body, Last: e.h.NoKeepAlive || exchange.MayBeRequest(body)}
	if e.plain != nil && len(body) <= exchange.MaxSmallBody {
		return e.plain.Post(ctx, &out)
	}
	return e.transport.Post(ctx, &out)
}

// trusted is what o is worth. Nothing can have been done with what has not been
// read, so a success that came before the request had been sent in full is a
// failure; a refusal may come early.
func trusted(ctx context.Context, a *exchange.Answer, o hooks.Outcome) hooks.Outcome {
	if o.Verdict != hooks.Ack || a.Whole(ctx) {
		return o
	}
	return hooks.Outcome{Reason: message.JoinReason(exchange.StatusLine(a.Response), "answered before the request had been sent in full")}
}

// Close implements [hooks.Closer].
func (e *endpoint) Close() error {
	e.transport.Close()
	if e.plain != nil {
		e.plain.Close()
	}
	return nil
}

func (e *endpoint) unavailable(err error) error {
	return &hooks.UnavailableError{Target: "POST " + message.Printable(e.h.URL.String(), 256), Err: err}
}
