package plainhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// conn is a connection with what belongs to it.
type conn struct {
	raw  net.Conn
	fd   syscall.RawConn // nil: none
	in   *bufio.Reader
	out  []byte
	got  int64 // bytes read of the current answer
	left int64 // bytes that may be read of it
	born time.Time
	used time.Time
}

func newConn(raw net.Conn) *conn {
	c := &conn{raw: raw, born: time.Now()}
	c.in = bufio.NewReader(c)
	if s, ok := raw.(syscall.Conn); ok {
		c.fd, _ = s.SyscallConn()
	}
	return c
}

// Read reads from the connection within the bound of the current answer.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the response's headers exceeded %d bytes", exchange.MaxResponseHeaders)
	}
	n, err := c.raw.Read(p[:min(int64(len(p)), c.left)])
	c.got += int64(n)
	c.left -= int64(n)
	return n, err
}

// send writes the request in one piece, and returns how much of it was taken.
func (c *conn) send(head string, out *exchange.Request) (int, error) {
	b := append(c.out[:0], head...)
	if out.Last {
		b = append(b, "Connection: close\r\n"...)
	}
	for _, f := range out.Fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(out.Body)), 10)
	b = append(append(b, "\r\n\r\n"...), out.Body...)
	c.out = b
	return c.raw.Write(b)
}

// response reads an answer's head, past the informational ones.
func (c *conn) response() (*http.Response, error) {
	for range exchange.MaxInformational + 1 {
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols || res.StatusCode < 100 {
			return res, nil
		}
	}
	return nil, exchange.ErrInformational
}

// alive reports whether an idle connection is still open and silent.
func (c *conn) alive() bool {
	_, err := c.peek()
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
}

// spoken reports whether something has come in on a new connection.
func (c *conn) spoken() bool {
	n, err := c.peek()
	return n > 0 && err == nil
}

// peek looks at what has come in: nothing so far is EAGAIN, nothing ever 0 bytes.
func (c *conn) peek() (n int, err error) {
	if c.fd == nil {
		return 0, syscall.EAGAIN
	}
	failed := c.fd.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return true
	})
	if failed != nil {
		return 0, failed
	}
	return n, err
}

// body is a response's body; closing it hands the connection back when the
// whole answer has been read.
type body struct {
	io.ReadCloser
	pool         *pool
	c            *conn
	stop         func() bool
	reuse, ended bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Close never reads on, unlike the body of net/http that it wraps.
func (b *body) Close() error {
	if b.stop() && b.reuse && b.ended && b.c.in.Buffered() == 0 {
		b.pool.put(b.c)
		return nil
	}
	return b.c.raw.Close()
}
