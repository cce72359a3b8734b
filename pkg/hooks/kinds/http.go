package kinds

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

const (
	// idleFor is below the time after which common servers close an idle
	// connection (5 s and more), so that a request seldom meets a closing one.
	idleFor = 4 * time.Second
	// maxAge is how long one connection is used, so that requests follow a name
	// to its new address.
	maxAge = time.Minute
	// pingAfter is how long a connection of HTTP/2 may be silent before it is
	// asked for a sign of life, and how long it has for that: a dead one would
	// fail every call, because a timeout ends only the call.
	pingAfter = 5 * time.Second
	// dialFor bounds connecting, which goes on in the background after a
	// request was given up.
	dialFor              = 10 * time.Second
	maxResponseHeaders   = 64 << 10
	defaultMaxRetryAfter = time.Hour
)

// endpoint posts each delivery to one URL over a pool of kept connections.
type endpoint struct {
	h    *spec.Handler
	opts Options
	url  *url.URL // without userinfo

	socket      string  // path of a Unix socket; "": none
	host        string  // Host header; "": as the URL
	contentType string  // of messages without one
	fixed       []field // of every request
	signers     signers

	dial       dialFunc
	proxy      func(*http.Request) (*url.URL, error)
	transports transports
	framed     atomic.Bool // the last answer of a transport came over HTTP/2
	wire       *wire       // nil: every request takes a transport
	warn       *rate.Sometimes
}

func newHTTP(h *spec.Handler, o Options) (hooks.Hook, error) {
	socket, u, err := target(h.URL.Value)
	if err != nil {
		return nil, fmt.Errorf("handler url %q: %w", printable(h.URL.String(), 256), err)
	}
	e := &endpoint{h: h, opts: o, url: u, socket: socket, warn: &rate.Sometimes{Interval: time.Minute}}
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
	e.wire = newWire(e)
	return e, nil
}

// connect prepares how the endpoint is reached.
func (e *endpoint) connect(conf *tls.Config) {
	e.dial = newDialer().DialContext
	e.proxy = http.ProxyFromEnvironment
	if e.socket != "" {
		e.proxy = nil
	}
	e.transports.build = func() *http.Transport { return e.newTransport(conf) }
}

// target splits a handler's URL into the Unix socket it names, if any, and what
// is asked for there. Its errors do not show the URL.
func target(raw string) (socket string, u *url.URL, err error) {
	if strings.HasPrefix(raw, spec.SocketScheme) {
		return spec.SocketURL(raw)
	}
	u, err = url.Parse(raw)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", nil, errors.New("not an http:// or https:// URL with a host")
	}
	return "", u, nil
}

func newDialer() *net.Dialer { return &net.Dialer{Timeout: dialFor, KeepAlive: 30 * time.Second} }

// Handle implements [hooks.Hook].
func (e *endpoint) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: stopReason(ctx, e.h.Timeout)}, nil
	}
	res, err := e.send(ctx, &m)
	if err != nil {
		return e.failure(ctx, err)
	}
	defer res.close()
	// An endpoint that ends its work because we have hung up may still say 200,
	// and over TLS that answer can come in while the connection is closing.
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: stopReason(ctx, e.h.Timeout)}, nil
	}
	if err := e.proxySays(res.Response); err != nil {
		return hooks.Outcome{}, err
	}
	o := res.trusted(ctx, e.outcome(res.Response))
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
		o.Reason = joinReason(statusLine(res), line)
	}
	return o
}

// send posts m.
func (e *endpoint) send(ctx context.Context, m *hooks.Message) (answer, error) {
	return e.post(ctx, e.fields(m), m.Body, func() string { return webhookID(m) })
}

// post sends a request, signed with the id if there is a secret.
func (e *endpoint) post(ctx context.Context, fields []field, body []byte, id func() string) (answer, error) {
	if len(e.signers) > 0 {
		var err error
		if fields, err = e.signers.sign(fields, id(), body, time.Now()); err != nil {
			return answer{}, err
		}
	}
	out := outgoing{fields: fields, body: body, last: e.h.NoKeepAlive || mayBeRequest(body)}
	if e.wire != nil && len(body) <= maxWireBody {
		return e.wire.post(ctx, &out)
	}
	a, err := e.transport(ctx, &out)
	if err == nil {
		e.framed.Store(a.ProtoMajor == 2)
	}
	return a, err
}

// request is the POST as the transport takes it.
func (e *endpoint) request(ctx context.Context, out *outgoing) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: e.url, Host: e.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(out.fields)), Body: http.NoBody, ContentLength: int64(len(out.body)),
		Close: out.last && !e.framed.Load(),
	}
	for _, f := range out.fields {
		req.Header[f.name] = []string{f.value}
	}
	if len(out.body) > 0 {
		req.GetBody = bodyOf(out.body)
		req.Body, _ = req.GetBody()
	}
	return req.WithContext(ctx)
}

// bodyOf returns what makes a reader of data for each time it is sent. A large one
// is counted; a small one is taken at once, together with the headers.
func bodyOf(data []byte) func() (io.ReadCloser, error) {
	if len(data) <= maxWireBody {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	}
	left := new(atomic.Int64)
	return func() (io.ReadCloser, error) { return newCountedBody(data, left), nil }
}

// Check implements [hooks.Checker]: the host's name resolves, or the socket is
// there. It sends nothing.
func (e *endpoint) Check(ctx context.Context) error {
	if e.socket != "" {
		return e.checkSocket()
	}
	host := e.url.Hostname()
	proxy, err := e.proxy(&http.Request{URL: e.url})
	if err != nil {
		return e.unavailable(errors.New("the proxy of the environment (HTTP_PROXY, HTTPS_PROXY) is not a URL"))
	}
	if proxy != nil {
		host = proxy.Hostname() // the proxy resolves the endpoint's name
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return e.unavailable(errors.New(e.describeUnsent(&unsentError{err: err})))
	}
	return nil
}

func (e *endpoint) checkSocket() error {
	switch info, err := os.Stat(e.socket); {
	case err != nil:
		return e.unavailable(errno(err))
	case info.Mode().Type() != os.ModeSocket:
		return e.unavailable(errors.New("the file is no socket"))
	}
	return nil
}

// Close implements [hooks.Closer].
func (e *endpoint) Close() error {
	e.transports.close()
	if e.wire != nil {
		e.wire.pool.close()
	}
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
