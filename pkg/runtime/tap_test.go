package runtime

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The numbers of basic methods in AMQP 0-9-1.
const (
	classBasic      = 60
	methodConsumeOK = 21
	methodCancelOK  = 31
	methodPublish   = 40
	methodAck       = 80
	methodReject    = 90
	methodNack      = 120
	frameMethod     = 1
	frameHeadBytes  = 7 // type, channel and size
)

// tap listens to what the runtime sends, and can keep what the broker sends from
// arriving.
type tap struct {
	mu   sync.Mutex
	sent map[string][]string // basic methods by purpose of the connection
	drop func(purpose string, method uint16, rest []byte) bool
}

// through makes cfg connect by way of the tap.
func (tp *tap) through(b *bench, cfg Config) Config {
	tp.sent = map[string][]string{}
	cfg.Dial = func(_ context.Context, purpose string) (*amqp.Connection, error) {
		return b.connect(amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
			conn, err := b.network(network, addr)
			if err != nil {
				return nil, err
			}
			return &tapped{Conn: conn, tap: tp, purpose: purpose, in: bufio.NewReader(conn)}, nil
		}})
	}
	return cfg
}

// methods are the settlements and publishings sent so far on the connections of
// a purpose, in words.
func (tp *tap) methods(purpose string) []string {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Clone(tp.sent[purpose])
}

func (tp *tap) heard(purpose string, payload []byte) {
	words := inWords(payload)
	if words == "" {
		return
	}
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.sent[purpose] = append(tp.sent[purpose], words)
}

// inWords names a method that settles or publishes, with its flags.
func inWords(payload []byte) string {
	class, method, rest := methodOf(payload)
	if class != classBasic {
		return ""
	}
	flags := func(set string, at int, bit byte) string {
		if rest[at]&bit != 0 {
			return set
		}
		return ""
	}
	switch method { // after the delivery tag of 8 bytes come the flags
	case methodPublish:
		return "publish"
	case methodAck:
		return "ack" + flags(" multiple", 8, 1)
	case methodReject:
		return "reject" + flags(" requeue", 8, 1)
	case methodNack:
		return "nack" + flags(" multiple", 8, 1) + flags(" requeue", 8, 2)
	}
	return ""
}

func methodOf(payload []byte) (class, method uint16, rest []byte) {
	if len(payload) < 4 {
		return 0, 0, nil
	}
	return binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]), payload[4:]
}

// tapped is one connection with a tap on it.
type tapped struct {
	net.Conn
	tap     *tap
	purpose string

	in      *bufio.Reader
	pending []byte // the rest of a frame from the broker

	out     bytes.Buffer // what is not a whole frame yet
	started bool         // the protocol header, 8 bytes, is behind us
}

// Read returns the broker's frames but for those that are dropped.
func (c *tapped) Read(p []byte) (int, error) {
	for len(c.pending) == 0 {
		head := make([]byte, frameHeadBytes)
		if _, err := io.ReadFull(c.in, head); err != nil {
			return 0, err
		}
		size := int(binary.BigEndian.Uint32(head[3:]))
		frame := append(head, make([]byte, size+1)...)
		if _, err := io.ReadFull(c.in, frame[frameHeadBytes:]); err != nil {
			return 0, err
		}
		class, method, rest := methodOf(frame[frameHeadBytes : frameHeadBytes+size])
		basic := frame[0] == frameMethod && class == classBasic
		if basic && c.tap.drop != nil && c.tap.drop(c.purpose, method, rest) {
			continue
		}
		c.pending = frame
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// Write passes everything on and listens.
func (c *tapped) Write(p []byte) (int, error) {
	c.out.Write(p)
	if !c.started && c.out.Len() >= 8 {
		c.out.Next(8)
		c.started = true
	}
	for c.started && c.out.Len() >= frameHeadBytes {
		head := c.out.Bytes()
		size := int(binary.BigEndian.Uint32(head[3:]))
		if c.out.Len() < frameHeadBytes+size+1 {
			break
		}
		frame := c.out.Next(frameHeadBytes + size + 1)
		if frame[0] == frameMethod {
			c.tap.heard(c.purpose, frame[frameHeadBytes:frameHeadBytes+size])
		}
	}
	return c.Conn.Write(p)
}
