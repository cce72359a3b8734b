package kinds

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// unreachable are the errors by which a system says that nobody is there.
var unreachable = []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN}

// failure tells an endpoint that is not there, which is not the message's
// fault, from an exchange that failed.
func (e *endpoint) failure(ctx context.Context, err error) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: stopReason(ctx, e.h.Timeout)}, nil
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return hooks.Outcome{}, e.unavailable(errors.New(describeTransport(err)))
	}
	var op *net.OpError
	if e.socket != "" && errors.As(err, &op) && op.Op == "dial" {
		return hooks.Outcome{}, e.unavailable(errors.New(describeTransport(err)))
	}
	if reason := describeTLS(err, e.h.TLS); reason != "" {
		return hooks.Outcome{}, e.unavailable(errors.New(printable(e.mask(reason), maxReason)))
	}
	for _, u := range unreachable {
		if errors.Is(err, u) {
			return hooks.Outcome{}, e.unavailable(errors.New(describeTransport(err)))
		}
	}
	return hooks.Outcome{Reason: printable(e.mask(describeTransport(err)), maxReason)}, nil
}

// describeTransport names the kinds of errors that people know by their own
// words, without addresses: the URL may be a secret.
func describeTransport(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var no syscall.Errno
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "cannot resolve the host's name: " + dns.Err
	case errors.As(err, &op) && op.Op == "proxyconnect" && errors.As(err, &no):
		return "proxy: " + no.Error()
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "connecting timed out"
	case errors.As(err, &no):
		return no.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection without an answer"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	}
	return err.Error()
}

var userinfo = regexp.MustCompile(`//[^/@\s"]*@`)

// mask removes from an error's text what the spec does not show in the open.
func (e *endpoint) mask(text string) string {
	text = userinfo.ReplaceAllString(text, "//")
	if host := e.url.Hostname(); !strings.Contains(e.h.URL.String(), host) {
		text = strings.ReplaceAll(text, host, "(host)")
	}
	return text
}
