package http

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
)

// maxBody is how much of a response is read. A longer one costs its connection.
const maxBody = 64 << 10

// defaultMaxRetryAfter bounds what an endpoint asks for with Retry-After.
const defaultMaxRetryAfter = time.Hour

// outcomeHeader is the response header that overrides the status.
const outcomeHeader = "Rsctl-Outcome"

// outcome reads the answer from the response's header and status.
func (e *endpoint) outcome(res *http.Response) hooks.Outcome {
	if answers := res.Header[outcomeHeader]; len(answers) > 0 {
		return headerAnswer(answers)
	}
	if o, ok := message.ByRule(e.h.Statuses, res.StatusCode); ok {
		return o
	}
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return hooks.Outcome{Verdict: hooks.Ack}
	case code >= 300 && code <= 399:
		return hooks.Outcome{Reason: e.redirected(res)}
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return retryAfter(res, e.maxRetryAfter())
	case blamesMessage(code):
		return hooks.Outcome{Verdict: hooks.Drop}
	case code >= 400 && code <= 599:
		return hooks.Outcome{Verdict: hooks.Retry}
	}
	return hooks.Outcome{} // not a status of HTTP
}

// blamesMessage reports whether a status says that the message itself will never
// do. The other 4xx are about the endpoint or how it is called: a wrong token or
// path, or a roll-out that is half done, must not throw a queue away.
func blamesMessage(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusGone, http.StatusLengthRequired, http.StatusRequestEntityTooLarge,
		http.StatusRequestURITooLong, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return false
}

func headerAnswer(answers []string) hooks.Outcome {
	if len(answers) > 1 {
		return hooks.Outcome{Reason: "malformed RSCTL-Outcome: sent more than once"}
	}
	o, err := message.ParseAnswer(answers[0])
	if err != nil {
		return hooks.Outcome{Reason: message.JoinReason("malformed RSCTL-Outcome", err.Error())}
	}
	return o
}

func (e *endpoint) maxRetryAfter() time.Duration {
	if e.h.MaxRetryAfter > 0 {
		return e.h.MaxRetryAfter
	}
	return defaultMaxRetryAfter
}

// retryAfter honours Retry-After: seconds or a date. What is not a time in the
// future is a plain retry.
func retryAfter(res *http.Response, limit time.Duration) hooks.Outcome {
	d := min(parseRetryAfter(res.Header), limit)
	if d <= 0 {
		return hooks.Outcome{Verdict: hooks.Retry}
	}
	return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: d}
}

// parseRetryAfter measures a date from the response's own Date, so that the
// clocks of the two machines need not agree. It returns 0 for what it cannot
// read.
func parseRetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if digits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return at.Sub(now)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// redirected explains a redirect. It is not followed: a 301 or 302 would turn
// the POST into a GET without a body, whose 200 means nothing.
func (e *endpoint) redirected(res *http.Response) string {
	what := exchange.StatusLine(res)
	if to := e.safeLocation(res.Header.Get("Location")); to != "" {
		what += " to " + to
	}
	return message.Printable(what+"; redirects are not followed, change the URL of the handler", message.MaxReason)
}

// safeLocation is a Location without what may be secret: userinfo, the query,
// and a path that our own URL keeps secret.
func (e *endpoint) safeLocation(location string) string {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	own := strings.Trim(e.url.Path, "/")
	if own != "" && !strings.Contains(e.h.URL.String(), own) && strings.Contains(u.Path, own) {
		u.Path, u.RawPath = "/…", "/…"
	}
	return fmt.Sprintf("%q", message.Printable(u.String(), 512))
}

// firstLine reads the response up to its bound, which lets the connection be
// used again, and returns the first line of a text that explains a failure.
func firstLine(res *http.Response) string {
	if res.ContentLength == 0 || res.ContentLength > maxBody || res.StatusCode == http.StatusSwitchingProtocols {
		return ""
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n, err := io.ReadFull(res.Body, (*buf)[:4<<10])
	line := ""
	if res.StatusCode > 299 && res.Header.Get("Content-Encoding") == "" {
		text, _, _ := bytes.Cut(bytes.TrimSpace((*buf)[:n]), []byte("\n"))
		line = message.Printable(string(bytes.TrimSpace(text)), message.MaxReason)
	}
	for left := maxBody - n; left > 0 && err == nil; left -= n {
		n, err = res.Body.Read((*buf)[:min(left, len(*buf))])
	}
	return line
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 32<<10)
	return &b
}}

// withReply adds the response's body. One that breaks off or is too long would
// be a wrong reply, so it is a failure, whatever the status said.
func (e *endpoint) withReply(ctx context.Context, res *http.Response, o hooks.Outcome) hooks.Outcome {
	body, err := io.ReadAll(io.LimitReader(res.Body, message.MaxReply+1))
	switch {
	case ctx.Err() != nil:
		return hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}
	case err != nil:
		return hooks.Outcome{Reason: message.JoinReason("the reply broke off", describeTransport(err))}
	case len(body) > message.MaxReply:
		return hooks.Outcome{Reason: fmt.Sprintf("the reply is longer than %d bytes", message.MaxReply)}
	}
	o.Reply = body
	if kind := res.Header.Get("Content-Type"); len(kind) <= maxReplyType {
		o.ReplyType = kind
	}
	return o
}

// maxReplyType is the longest content type that AMQP can carry.
const maxReplyType = 255
