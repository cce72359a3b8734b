package kinds

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A wire posts over plain HTTP/1.1, one goroutine a call: net/http's transport
// hands each request through two more, which costs as much as the rest of a
// small call. Parsing responses is left to net/http. TLS, proxies and large
// bodies, whose answer may come before they are sent, take the transport.
type wire struct {
	network, addr string

	e    *endpoint
	head string // request line and Host
	pool pool
}

// maxWireBody is the largest body that a wire sends: one that a socket takes
// at once, so that nothing needs to read while it is being written.
const maxWireBody = 32 << 10

// maxInformational is how many 1xx may come before an answer.
const maxInformational = 5

var errInformational = errors.New("too many informational (1xx) responses")

// newWire returns nil when e's URL is not for a wire.
func newWire(e *endpoint) *wire {
	if e.socket != "" {
		return wireTo(e, "unix", e.socket)
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: e.url})
	if e.url.Scheme != "http" || proxy != nil || err != nil || !plain(e.url.Host) || strings.Contains(e.url.Host, "%") {
		return nil
	}
	return wireTo(e, "tcp", net.JoinHostPort(e.url.Hostname(), cmp.Or(e.url.Port(), "80")))
}

func wireTo(e *endpoint, network, addr string) *wire {
	return &wire{
		network: network, addr: addr, e: e,
		head: "POST " + e.url.RequestURI() + " HTTP/1.1\r\nHost: " + cmp.Or(e.host, e.url.Host) + "\r\n",
		pool: pool{limit: e.opts.Concurrency},
	}
}

// post sends one request. A kept connection that ends before the first byte of an
// answer was closed by the server while idle, most likely; and what it says it
// cannot read, by a status or by words that are no HTTP, may have been left there
// before. The request is then sent once more
// on a new one.
func (w *wire) post(ctx context.Context, out *outgoing) (answer, error) {
	if c := w.pool.get(); c != nil {
		a, err := w.exchange(ctx, c, out)
		switch {
		case ctx.Err() != nil, err != nil && c.got > 0 && !noAnswer(err), err == nil && !aboutLeftovers(a.Response):
			return a, err
		case err == nil:
			a.close()
		}
	}
	conn, err := w.e.dial(ctx, w.network, w.addr)
	if err != nil {
		return answer{}, &unsentError{err: err}
	}
	c := newWireConn(conn)
	if c.spoken() {
		conn.Close()
		return answer{}, &unsentError{err: errUnasked}
	}
	return w.exchange(ctx, c, out)
}

func (w *wire) exchange(ctx context.Context, c *wireConn, out *outgoing) (answer, error) {
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	c.got, c.left = 0, maxResponseHeaders
	// A server may answer and close without reading: its answer counts more
	// than an error of writing.
	sent, writeErr := c.send(w.head, out)
	res, err := c.response()
	if err != nil {
		stop()
		c.conn.Close()
		switch {
		case writeErr != nil && sent == 0:
			err = &unsentError{err: writeErr}
		case writeErr != nil && c.got == 0:
			err = writeErr
		}
		return answer{}, err
	}
	c.left = math.MaxInt64
	reuse := writeErr == nil && !res.Close && !out.last && !endsUnsure(res)
	res.Body = &wireBody{ReadCloser: res.Body, w: w, c: c, stop: stop, reuse: reuse, ended: res.ContentLength == 0}
	return answer{Response: res, cut: writeErr != nil}, nil
}

// wireConn is a connection with what belongs to it.
type wireConn struct {
	conn net.Conn
	raw  syscall.RawConn // nil: none
	in   *bufio.Reader
	out  []byte
	got  int64 // bytes read of the current answer
	left int64 // bytes that may be read of it
	born time.Time
	used time.Time
}

func newWireConn(conn net.Conn) *wireConn {
	c := &wireConn{conn: conn, born: time.Now()}
	c.in = bufio.NewReader(c)
	if s, ok := conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	return c
}

// Read reads from the connection within the bound of the current answer.
func (c *wireConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the response's headers exceeded %d bytes", maxResponseHeaders)
	}
	n, err := c.conn.Read(p[:min(int64(len(p)), c.left)])
	c.got += int64(n)
	c.left -= int64(n)
	return n, err
}

// send writes the request in one piece, and returns how much of it was taken.
func (c *wireConn) send(head string, out *outgoing) (int, error) {
	b := append(c.out[:0], head...)
	if out.last {
		b = append(b, "Connection: close\r\n"...)
	}
	for _, f := range out.fields {
		b = append(b, f.name...)
		b = append(b, ": "...)
		b = append(b, f.value...)
		b = append(b, "\r\n"...)
	}
	b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(out.body)), 10)
	b = append(append(b, "\r\n\r\n"...), out.body...)
	c.out = b
	return c.conn.Write(b)
}

// response reads an answer's head, past the informational ones.
func (c *wireConn) response() (*http.Response, error) {
	for range maxInformational + 1 {
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols || res.StatusCode < 100 {
			return res, nil
		}
	}
	return nil, errInformational
}

// alive reports whether an idle connection is still open and silent.
func (c *wireConn) alive() bool {
	_, err := c.peek()
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
}

// spoken reports whether something has come in on a new connection.
func (c *wireConn) spoken() bool {
	n, err := c.peek()
	return n > 0 && err == nil
}

// peek looks at what has come in: nothing so far is EAGAIN, nothing ever 0 bytes.
func (c *wireConn) peek() (n int, err error) {
	if c.raw == nil {
		return 0, syscall.EAGAIN
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return true
	})
	if failed != nil {
		return 0, failed
	}
	return n, err
}

// wireBody is a response's body; closing it hands the connection back when the
// whole answer has been read.
type wireBody struct {
	io.ReadCloser
	w            *wire
	c            *wireConn
	stop         func() bool
	reuse, ended bool
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Close never reads on, unlike the body of net/http that it wraps.
func (b *wireBody) Close() error {
	if b.stop() && b.reuse && b.ended && b.c.in.Buffered() == 0 {
		b.w.pool.put(b.c)
		return nil
	}
	return b.c.conn.Close()
}
