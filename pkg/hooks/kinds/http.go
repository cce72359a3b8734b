package kinds

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

const (
	// idleFor is below the time after which common servers close an idle
	// connection (5 s and more), so that a request seldom meets a closing one.
	idleFor = 4 * time.Second
	// dialFor bounds connecting, which goes on in the background after a
	// request was given up.
	dialFor              = 10 * time.Second
	maxResponseHeaders   = 64 << 10
	defaultMaxRetryAfter = time.Hour
)

// endpoint posts each delivery to one URL over a pool of kept connections.
type endpoint struct {
	h         *spec.Handler
	opts      Options
	url       *url.URL // without userinfo
	host      string   // Host header; "": as the URL
	header    http.Header
	transport *http.Transport
	warn      *rate.Sometimes
}

func newHTTP(h *spec.Handler, o Options) (hooks.Hook, error) {
	if h.Secret != nil {
		return nil, errors.New("handler http: secret (signed requests) is not supported by this version of rsctl")
	}
	u, err := url.Parse(h.URL.Value)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("handler url %q is not an http:// or https:// URL with a host", printable(h.URL.String(), 256))
	}
	e := &endpoint{h: h, opts: o, url: u, warn: &rate.Sometimes{Interval: time.Minute}}
	if err := e.setHeaders(); err != nil {
		return nil, err
	}
	e.url.User, e.url.Fragment = nil, ""
	conf, err := tlsConfig(h.TLS)
	if err != nil {
		return nil, err
	}
	e.transport = newTransport(conf, o.Concurrency)
	return e, nil
}

// newTransport keeps as many connections as calls may be in flight. Responses
// are not decompressed: a small one could become gigabytes.
func newTransport(conf *tls.Config, concurrency int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialFor, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    dialFor,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        idleFor,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeaders,
	}
}

// Handle implements [hooks.Hook].
func (e *endpoint) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	// The transport is used without http.Client, which would follow redirects.
	res, err := e.transport.RoundTrip(e.request(ctx, &m))
	if err != nil {
		return e.failure(ctx, err)
	}
	defer res.Body.Close()
	o := e.outcome(res)
	line := firstLine(res)
	if o.Verdict != hooks.Ack && o.Reason == "" {
		o.Reason = joinReason(statusLine(res), line)
	}
	return o, nil
}

// request is the POST for m.
func (e *endpoint) request(ctx context.Context, m *hooks.Message) *http.Request {
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           e.url,
		Host:          e.host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        e.headers(m),
		Body:          http.NoBody,
		ContentLength: int64(len(m.Body)),
	}
	if len(m.Body) > 0 {
		body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Body)), nil }
		req.Body, _ = body()
		req.GetBody = body
	}
	return req.WithContext(ctx)
}

// Check implements [hooks.Checker]: the host's name resolves. It sends nothing.
func (e *endpoint) Check(ctx context.Context) error {
	host := e.url.Hostname()
	proxy, err := e.transport.Proxy(&http.Request{URL: e.url})
	if err != nil {
		return e.unavailable(errors.New("the proxy of the environment (HTTP_PROXY, HTTPS_PROXY) is not a URL"))
	}
	if proxy != nil {
		host = proxy.Hostname() // the proxy resolves the endpoint's name
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return e.unavailable(errors.New(describeTransport(err)))
	}
	return nil
}

// Close implements [hooks.Closer].
func (e *endpoint) Close() error {
	e.transport.CloseIdleConnections()
	return nil
}

func (e *endpoint) unavailable(err error) error {
	return &hooks.UnavailableError{Target: "POST " + printable(e.h.URL.String(), 256), Err: err}
}

// statusLine is the status as the server wrote it.
func statusLine(res *http.Response) string {
	status := strings.TrimSpace(res.Status)
	if text := http.StatusText(res.StatusCode); text != "" && !strings.Contains(status, " ") {
		status += " " + text
	}
	return "HTTP " + status
}
