package transport

import (
	"crypto/tls"
	"net"
	"sync/atomic"
)

// A keptConn is a transport's connection that can be marked as one over which no
// other request may go.
type keptConn struct {
	net.Conn
	spent  atomic.Bool
	asking atomic.Bool // a request is about to be written
	heard  atomic.Bool // something has come in since its first byte was written
}

// answers reports whether what is read now can be an answer: the request has
// begun to be written, and something has come in since.
func (c *keptConn) answers() bool { return !c.asking.Load() && c.heard.Load() }

func (c *keptConn) Write(p []byte) (int, error) {
	if c.asking.Load() {
		c.heard.Store(false) // before asking: until then nothing answers
		c.asking.Store(false)
	}
	return c.Conn.Write(p)
}

func (c *keptConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// kept finds the connection below TLS. There is none to mark below HTTP/2, which
// frames its requests: a body is never taken for one.
func kept(conn net.Conn) *keptConn {
	if c, ok := conn.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol == "h2" {
		return nil
	}
	for {
		switch c := conn.(type) {
		case *keptConn:
			return c
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}
