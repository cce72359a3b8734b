// Package frames keeps amqp091-go from ending a connection because of one
// message.
//
// RabbitMQ takes and delivers headers that the client library does not read:
// tables nested deeper than 32, more than 8,192 entries, more than a frame holds
// (the server adds headers of its own to a message that just fitted). The library
// then ends the connection with everything that is on it, and the broker delivers
// the message again on the next one. A [Conn] lies under the library, and gives it
// such a message with a [Mark] instead of its headers. The message in the broker
// stays as it is.
package frames

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

const (
	headBytes   = 7 // type, channel and size
	overhead    = headBytes + 1
	frameHeader = 2
	frameEnd    = 0xCE
	// defaultMax is the largest frame of a server that nobody has configured.
	defaultMax = 128 << 10
	// readAhead is how much is read at once when a frame has to be completed.
	readAhead = 16 << 10
)

// Conn passes on what it reads, but for content headers that amqp091-go cannot
// read. All else is up to the embedded connection.
type Conn struct {
	net.Conn
	max atomic.Int64 // size of the largest frame

	pass int64  // bytes of the current frame that need no look
	out  []byte // may be handed out
	held []byte // what comes next; begins with a frame that is not complete, or unreadable
	buf  []byte // holds held
}

// Screen returns c with its unreadable messages marked.
func Screen(c net.Conn) *Conn {
	s := &Conn{Conn: c}
	s.max.Store(defaultMax)
	return s
}

// Limit says how large a frame may be, as negotiated; 0 is any size.
func (c *Conn) Limit(size int) {
	if size <= 0 {
		size = 1 << 30
	}
	c.max.Store(int64(size))
}

// Read implements [net.Conn]. As for any stream, no two Reads may overlap.
func (c *Conn) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if len(c.out) > 0 {
			n := copy(p, c.out)
			c.out = c.out[n:]
			return n, nil
		}
		if len(c.held) > 0 {
			if err := c.proceed(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.Conn.Read(p)
		good := c.vet(p[:n])
		c.hold(p[good:n])
		if good > 0 || err != nil {
			return good, err
		}
	}
	return 0, nil
}

func (c *Conn) hold(b []byte) {
	if len(b) > 0 {
		c.buf = append(c.buf[:0], b...)
		c.held = c.buf
	}
}

// vet returns how many bytes at the beginning of b may be handed out. What
// follows begins with a frame that is not complete, or that cannot be read.
func (c *Conn) vet(b []byte) int {
	at := int(min(c.pass, int64(len(b))))
	c.pass -= int64(at)
	for len(b)-at >= headBytes {
		rest := b[at:]
		total := int64(binary.BigEndian.Uint32(rest[3:])) + overhead
		if rest[0] == frameHeader && total >= contentFixed+overhead {
			if total > c.max.Load() || total > int64(len(rest)) || !readable(rest[:total]) {
				return at
			}
		}
		if total > int64(len(rest)) {
			c.pass = total - int64(len(rest))
			return len(b)
		}
		at += int(total)
	}
	return at
}

func readable(frame []byte) bool {
	return scanContent(frame[headBytes:len(frame)-1]).reason == ""
}

// proceed hands out, or reads on, what is held.
func (c *Conn) proceed() error {
	if good := c.vet(c.held); good > 0 {
		c.out, c.held = c.held[:good], c.held[good:]
		return nil
	}
	if len(c.held) < headBytes {
		return c.more(headBytes)
	}
	total := int64(binary.BigEndian.Uint32(c.held[3:])) + overhead
	switch {
	case total > c.max.Load():
		return c.shrink(total)
	case total > int64(len(c.held)):
		return c.more(int(total))
	}
	frame := c.held[:total]
	c.held = c.held[total:]
	payload := frame[headBytes : total-1]
	found := scanContent(payload)
	m := Mark{
		Reason: fmt.Sprintf("%s (%d bytes of properties and headers)", found.reason, len(payload)),
		Died:   died(payload),
	}
	c.out = marked(frame, payload, found, m)
	return nil
}

// more reads once, with room for need bytes in all.
func (c *Conn) more(need int) error {
	have := len(c.held)
	if need = max(need, readAhead); cap(c.buf) < need {
		c.buf = make([]byte, need)
	}
	c.buf = c.buf[:cap(c.buf)]
	if have > 0 && &c.held[0] != &c.buf[0] {
		copy(c.buf, c.held)
	}
	n, err := c.Conn.Read(c.buf[have:])
	c.held = c.buf[:have+n]
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// take fills b from what is held and from the connection.
func (c *Conn) take(b []byte) error {
	n := copy(b, c.held)
	c.held = c.held[n:]
	_, err := io.ReadFull(c.Conn, b[n:])
	return err
}
