// Package exchange is a request to an endpoint and its answer, and what has to be
// known of HTTP/1.1 so that the answer to one message is never taken for the
// answer to another. Both ways of sending, packages plainhttp and transport, keep
// to it.
package exchange

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

const (
	// IdleFor is below the time after which common servers close an idle
	// connection (5 s and more), so that a request seldom meets a closing one.
	IdleFor = 4 * time.Second
	// MaxAge is how long one connection is used, so that requests follow a name
	// to its new address.
	MaxAge = time.Minute
	// MaxSmallBody is the largest body that a socket takes at once, so that
	// nothing needs to read while it is being written. The answer to a larger one
	// may come before it is sent.
	MaxSmallBody = 32 << 10
	// MaxResponseHeaders is how much of an answer's headers is read.
	MaxResponseHeaders = 64 << 10
	// MaxInformational is how many 1xx may come before an answer.
	MaxInformational = 5
)

// ErrInformational is the end of a server that only ever says what it is about to
// do.
var ErrInformational = errors.New("too many informational (1xx) responses")

// ErrUnasked is about what a server sends before it can have read the request.
var ErrUnasked = errors.New("the endpoint speaks before it is asked: is that HTTP?")

// A Field is one header of a request.
type Field struct{ Name, Value string }

// A Request is what differs from one POST to the next.
type Request struct {
	Fields []Field
	Body   []byte
	Last   bool // its connection is closed after the answer
}

// An Answer is a response with what is known of its request. It has to be
// closed.
type Answer struct {
	*http.Response
	// Cut says that the request was not sent in full.
	Cut bool
	// Trip knows more about the request than Cut; nil: there is no more.
	Trip Trip
}

// A Trip follows a request that is still being sent while its answer comes.
type Trip interface {
	// Whole reports whether the request had been sent in full when the answer
	// came.
	Whole(ctx context.Context) bool
	// End is called when the answer has been read.
	End()
}

// Whole reports whether the request had been sent in full when the answer came.
func (a *Answer) Whole(ctx context.Context) bool {
	if a.Trip == nil {
		return !a.Cut
	}
	return a.Trip.Whole(ctx)
}

// Close gives the connection back, or closes it.
func (a *Answer) Close() {
	a.Body.Close()
	if a.Trip != nil {
		a.Trip.End()
	}
}

// An UnsentError is an error that came before a byte of the request was sent:
// the endpoint cannot have seen it.
type UnsentError struct {
	Err error
	// Tunnel says that a proxy had already opened the way to the endpoint.
	Tunnel bool
}

func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnsentError) Unwrap() error { return e.Err }

// StatusLine is the status as the server wrote it.
func StatusLine(res *http.Response) string {
	status := strings.TrimSpace(res.Status)
	if text := http.StatusText(res.StatusCode); text != "" && !strings.Contains(status, " ") {
		status += " " + text
	}
	return "HTTP " + status
}
