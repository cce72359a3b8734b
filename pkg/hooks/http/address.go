package http

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/plainhttp"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/transport"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/spec"
)

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

func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: transport.DialFor, KeepAlive: 30 * time.Second}
}

// connect prepares how the endpoint is reached.
func (e *endpoint) connect(conf *tls.Config) {
	e.dial = newDialer().DialContext
	e.proxy = http.ProxyFromEnvironment
	if e.socket != "" {
		e.proxy = nil
	}
	e.transport = transport.New(transport.Config{
		URL: e.url, Host: e.host, TLS: conf, Concurrency: e.opts.Concurrency, NoKeepAlive: e.h.NoKeepAlive,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if e.socket != "" {
				network, addr = "unix", e.socket
			}
			return e.dial(ctx, network, addr)
		},
		Proxy: func(req *http.Request) (*url.URL, error) {
			if e.proxy == nil {
				return nil, nil
			}
			return e.proxy(req)
		},
	})
	if e.socket != "" {
		e.plain = e.plainTo("unix", e.socket)
	} else if e.takesPlain() {
		e.plain = e.plainTo("tcp", net.JoinHostPort(e.url.Hostname(), cmp.Or(e.url.Port(), "80")))
	}
}

// takesPlain reports whether small requests can go straight to the address of the
// URL.
func (e *endpoint) takesPlain() bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: e.url})
	return e.url.Scheme == "http" && proxy == nil && err == nil && message.Plain(e.url.Host) && !strings.Contains(e.url.Host, "%")
}

func (e *endpoint) plainTo(network, addr string) poster {
	dial := func(ctx context.Context) (net.Conn, error) { return e.dial(ctx, network, addr) }
	return plainhttp.New(dial, e.url.RequestURI(), cmp.Or(e.host, e.url.Host), e.opts.Concurrency)
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
		return e.unavailable(errors.New(e.describeUnsent(&exchange.UnsentError{Err: err})))
	}
	return nil
}

func (e *endpoint) checkSocket() error {
	switch info, err := os.Stat(e.socket); {
	case err != nil:
		var no syscall.Errno
		if errors.As(err, &no) {
			err = no // without the path, which may be a secret
		}
		return e.unavailable(err)
	case info.Mode().Type() != os.ModeSocket:
		return e.unavailable(errors.New("the file is no socket"))
	}
	return nil
}
