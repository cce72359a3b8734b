package http

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
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/spec"
)

// unreachable are the errors by which a system says that no server is there, or that
// it cannot send, on whichever call they come.
var unreachable = []error{
	syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN,
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EACCES,
}

// failure tells an endpoint that cannot have seen the request, which is not the
// message's fault, from an exchange that failed.
func (e *endpoint) failure(ctx context.Context, err error) (hooks.Outcome, error) {
	var unsent *exchange.UnsentError
	early := errors.As(err, &unsent)
	switch {
	case early && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return hooks.Outcome{}, e.unavailable(errors.New(e.describeLate()))
	case ctx.Err() != nil:
		return hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}, nil
	case early:
		return hooks.Outcome{}, e.unavailable(errors.New(message.Printable(e.mask(e.describeUnsent(unsent)), message.MaxReason)))
	}
	if reason := describeTLS(err, e.h.TLS); reason != "" {
		return hooks.Outcome{}, e.unavailable(errors.New(message.Printable(e.mask(reason), message.MaxReason)))
	}
	for _, u := range unreachable {
		if errors.Is(err, u) {
			return hooks.Outcome{}, e.unavailable(errors.New(describeTransport(err)))
		}
	}
	return hooks.Outcome{Reason: message.Printable(e.mask(describeTransport(err)), message.MaxReason)}, nil
}

// describeLate says that a call was over before it was connected.
func (e *endpoint) describeLate() string {
	reason := "connecting took longer than the timeout"
	if e.h.Timeout > 0 {
		reason += " of " + spec.FormatDuration(e.h.Timeout)
	}
	if proxy := e.proxyHost(); proxy != "" {
		reason += " (through the proxy " + proxy + ")"
	}
	return reason
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
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "connecting timed out"
	case errors.As(err, &no):
		return no.Error() + advice(no)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection without an answer"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	}
	return err.Error()
}

// advice says what to do about a limit of this machine.
func advice(no syscall.Errno) string {
	switch no {
	case syscall.EMFILE:
		return ": raise ulimit -n or lower concurrency"
	case syscall.ENFILE:
		return ": too many for the whole machine; raise fs.file-max"
	case syscall.EADDRNOTAVAIL:
		return ": no local port or address is free for another connection"
	case syscall.EPERM, syscall.EACCES:
		return ": this machine does not allow the connection"
	}
	return ""
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
