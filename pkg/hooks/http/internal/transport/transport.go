// Package transport posts through net/http: over TLS, HTTP/2 and proxies, and
// bodies that are too large for one write. It follows each request closely enough
// to know whose answer came, and whether the request had been sent by then.
package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

const (
	// DialFor bounds connecting, which goes on in the background after a
	// request was given up.
	DialFor = 10 * time.Second
	// pingAfter is how long a connection of HTTP/2 may be silent before it is
	// asked for a sign of life, and how long it has for that: a dead one would
	// fail every call, because a timeout ends only the call.
	pingAfter = 5 * time.Second
)

// Config says where requests go.
type Config struct {
	URL         *url.URL
	Host        string // Host header; "": as the URL
	Dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	Proxy       func(*http.Request) (*url.URL, error)
	TLS         *tls.Config
	Concurrency int // connections that are kept
	NoKeepAlive bool
}

// A Client posts to one URL.
type Client struct {
	conf       Config
	transports transports
	framed     atomic.Bool // the last answer came over HTTP/2
}

// New returns a client, which connects to nothing yet.
func New(conf Config) *Client {
	c := &Client{conf: conf}
	c.transports.build = c.newTransport
	return c
}

// Close closes what is idle; calls in flight go on.
func (c *Client) Close() { c.transports.close() }

// Post sends one request. When a kept connection ends before the first byte of an
// answer, the server has closed it while it was idle, most likely; and when it
// answers that it cannot read a request, what it could not read may have been left
// there before. The request is then sent once more on another.
func (c *Client) Post(ctx context.Context, out *exchange.Request) (exchange.Answer, error) {
	a, err := c.post(ctx, out)
	if err == nil {
		c.framed.Store(a.ProtoMajor == 2)
	}
	return a, err
}

func (c *Client) post(ctx context.Context, out *exchange.Request) (exchange.Answer, error) {
	transport, p := c.transports.get(), &trip{last: out.Last}
	a, err := p.over(transport, c.request(ctx, out))
	switch {
	case ctx.Err() != nil:
		return a, err
	case err != nil && p.lost(err):
		c.transports.replace(transport)
		transport = c.transports.get()
	case err != nil && p.reused.Load() && exchange.NoAnswer(err):
		transport = c.transports.once()
	case err == nil && p.reused.Load() && exchange.AboutLeftovers(a.Response):
		a.Close()
		transport = c.transports.once()
	default:
		return a, err
	}
	p = &trip{last: out.Last}
	return p.over(transport, c.request(ctx, out))
}

// request is the POST as net/http takes it.
func (c *Client) request(ctx context.Context, out *exchange.Request) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: c.conf.URL, Host: c.conf.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(out.Fields)), Body: http.NoBody, ContentLength: int64(len(out.Body)),
		Close: out.Last && !c.framed.Load(),
	}
	for _, f := range out.Fields {
		req.Header[f.Name] = []string{f.Value}
	}
	if len(out.Body) > 0 {
		req.GetBody = bodyOf(out.Body)
		req.Body, _ = req.GetBody()
	}
	return req.WithContext(ctx)
}

// newTransport keeps as many connections as calls may be in flight. Responses
// are not decompressed: a small one could become gigabytes.
func (c *Client) newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  c.conf.Proxy,
		DialContext:            c.dial,
		OnProxyConnectResponse: connectAnswer,
		TLSClientConfig:        c.conf.TLS.Clone(), // a transport adds to it
		TLSHandshakeTimeout:    DialFor,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConnsPerHost:    c.conf.Concurrency,
		IdleConnTimeout:        exchange.IdleFor,
		DisableCompression:     true,
		DisableKeepAlives:      c.conf.NoKeepAlive,
		MaxResponseHeaderBytes: exchange.MaxResponseHeaders,
	}
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.conf.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &keptConn{Conn: conn}, nil
}

// connectAnswer takes a proxy's answer to CONNECT. Whatever it says, the endpoint
// has said nothing yet.
func connectAnswer(ctx context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s to CONNECT", exchange.StatusLine(res))
	}
	tunnelOpened(ctx)
	return nil
}
