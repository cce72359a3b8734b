package message_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// wire is an AMQP server just large enough to see how amqp091-go encodes a
// message and to hand the same bytes back to it as a delivery.
type wire struct {
	t          *testing.T
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	headers    chan int // the size of each content header frame published
}

func newWire(t *testing.T) *wire {
	t.Helper()
	client, server := net.Pipe()
	w := &wire{t: t, headers: make(chan int, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&echo{conn: server, in: bufio.NewReader(server), sizes: w.headers}).serve()
	}()
	conn, err := amqp.Open(client, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{}}, FrameSize: frameMax})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = server.Close()
		<-done
	})
	if w.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if w.deliveries, err = w.ch.Consume("q", "t", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// send publishes p and returns the size of its header frame and what comes back.
func (w *wire) send(p amqp.Publishing) (int, *amqp.Delivery) {
	w.t.Helper()
	if err := w.ch.Publish("", "q", false, false, p); err != nil {
		w.t.Fatal(err)
	}
	size := <-w.headers
	d, ok := <-w.deliveries
	if !ok {
		w.t.Fatal("the client closed its connection: it cannot read what it wrote")
	}
	return size, &d
}

const frameMax = 131_072

// echo is the server's side. It ends when its connection does.
type echo struct {
	conn  net.Conn
	in    *bufio.Reader
	sizes chan<- int
}

func (e *echo) serve() {
	if _, err := io.ReadFull(e.in, make([]byte, 8)); err != nil { // "AMQP" and the version
		return
	}
	start := append([]byte{0, 10, 0, 10, 0, 9, 0, 0, 0, 0}, longstr("PLAIN")...)
	e.method(0, append(start, longstr("en_US")...))
	for {
		frame, err := e.read()
		if err != nil {
			return
		}
		switch frame[0] {
		case 1:
			e.answer(binary.BigEndian.Uint16(frame[1:]), binary.BigEndian.Uint32(frame[7:]))
		case 2:
			e.sizes <- len(frame)
			e.deliver(frame)
		}
	}
}

// answer replies to the methods that a client waits for.
func (e *echo) answer(channel uint16, method uint32) {
	replies := map[uint32][]byte{
		10<<16 | 11: binary.BigEndian.AppendUint32([]byte{0, 10, 0, 30, 0, 9}, frameMax), // start-ok: tune
		10<<16 | 40: {0, 10, 0, 41, 0},
		10<<16 | 50: {0, 10, 0, 51},
		20<<16 | 10: {0, 20, 0, 11, 0, 0, 0, 0},
		60<<16 | 20: {0, 60, 0, 21, 1, 't'},
	}
	reply, ok := replies[method]
	if !ok {
		return
	}
	if method == 10<<16|11 {
		reply = append(reply, 0, 0) // no heartbeat
	}
	e.method(channel, reply)
}

func (e *echo) deliver(header []byte) {
	method := []byte{0, 60, 0, 60, 1, 't', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 'q'}
	e.method(binary.BigEndian.Uint16(header[1:]), method)
	_, _ = e.conn.Write(header)
}

// read returns the next frame, whole. Bodies are never sent.
func (e *echo) read() ([]byte, error) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(e.in, head); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	_, err := io.ReadFull(e.in, rest)
	return append(head, rest...), err
}

func (e *echo) method(channel uint16, payload []byte) {
	frame := binary.BigEndian.AppendUint16([]byte{1}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	_, _ = e.conn.Write(append(append(frame, payload...), 0xCE))
}

func longstr(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}
