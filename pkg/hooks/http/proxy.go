package http

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
)

// proxyHost is the address of the proxy that requests go through, without user
// and password; "" when there is none.
func (e *endpoint) proxyHost() string {
	if e.proxy == nil {
		return ""
	}
	proxy, err := e.proxy(&http.Request{URL: e.url})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Host
}

// describeUnsent says why a request could not be sent, and names the proxy when
// there is one: what it refuses is not the endpoint's doing.
func (e *endpoint) describeUnsent(u *exchange.UnsentError) string {
	proxy := e.proxyHost()
	if proxy != "" && !u.Tunnel {
		return "proxy " + proxy + ": " + describeProxy(u.Err)
	}
	reason := describeTLS(u.Err, e.h.TLS)
	if reason == "" && e.url.Scheme == "https" && cut(u.Err) {
		reason = "the endpoint closed the connection instead of securing it"
	}
	if reason == "" {
		reason = describeTransport(u.Err)
	}
	if proxy != "" {
		reason += " (through the proxy " + proxy + ")"
	}
	return reason
}

// cut reports whether a connection that was already open has been closed.
func cut(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &op) && op.Op != "dial" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// describeProxy says what is wrong between us and the proxy.
func describeProxy(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		err = op.Err
	}
	var untrusted x509.UnknownAuthorityError
	switch {
	case cut(err):
		return "closed the connection without an answer"
	case errors.As(err, &untrusted):
		return untrusted.Error()
	}
	return describeTransport(err)
}

// unreached are the errors of RFC 9209 by which a proxy says that it has not
// brought a request to its destination.
var unreached = []string{
	"dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
	"destination_ip_unroutable", "connection_refused", "connection_timeout", "connection_limit_reached",
	"tls_protocol_error", "tls_certificate_error", "tls_alert_received", "http_request_denied", "proxy_configuration_error",
}

// squidUnreached are the same in the words of Squid.
var squidUnreached = []string{
	"ERR_ACCESS_DENIED", "ERR_CACHE_ACCESS_DENIED", "ERR_CANNOT_FORWARD", "ERR_CONNECT_FAIL", "ERR_DNS_FAIL", "ERR_SOCKET_FAILURE",
}

// proxySays returns what a proxy says in the endpoint's place. Over plain HTTP
// its answers look like the endpoint's: only a 407, or an answer that tells by its
// headers that the request has not been passed on, is known to be its own.
func (e *endpoint) proxySays(res *http.Response) error {
	if res.StatusCode < 400 || e.url.Scheme != "http" || len(res.Header[outcomeHeader]) > 0 {
		return nil
	}
	if _, ruled := message.ByRule(e.h.Statuses, res.StatusCode); ruled {
		return nil
	}
	why := proxyError(res.Header)
	if why == "" && res.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	proxy := e.proxyHost()
	if proxy == "" {
		return nil // no proxy of ours: the endpoint's own affair
	}
	if why != "" {
		why = " (" + why + ")"
	}
	said := fmt.Sprintf("proxy %s: answered %s in the endpoint's place%s", proxy, exchange.StatusLine(res), why)
	return e.unavailable(errors.New(message.Printable(said, message.MaxReason)))
}

// proxyError finds the error by which a proxy says that it has not passed a
// request on.
func proxyError(h http.Header) string {
	word, _, _ := strings.Cut(h.Get("X-Squid-Error"), " ")
	if slices.Contains(squidUnreached, word) {
		return word
	}
	for _, status := range h.Values("Proxy-Status") {
		for _, param := range strings.FieldsFunc(status, func(r rune) bool { return r == ';' || r == ',' }) {
			name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			if name == "error" && slices.Contains(unreached, value) {
				return value
			}
		}
	}
	return ""
}
