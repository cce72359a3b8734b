package frames

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// patience bounds every wait for something that should happen at once.
const patience = time.Minute

// server speaks as much AMQP as it takes to deliver something to amqp091-go.
type server struct {
	t          testing.TB
	conn       net.Conn
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error
}

const testFrameMax = 8192

// newServer connects the client library to itself, by way of wrap.
func newServer(t testing.TB, wrap func(net.Conn) net.Conn) *server {
	t.Helper()
	ours, theirs := net.Pipe()
	s := &server{t: t, conn: ours}
	go s.answer()
	conn, err := amqp.Open(wrap(theirs), amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{}}, Vhost: "/", Locale: "en_US"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		_ = ours.Close() // nobody answers a close
		_ = conn.Close()
	})
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("channel: %v", err)
	}
	if s.deliveries, err = ch.Consume("q", "tag", true, false, false, false, nil); err != nil {
		t.Fatalf("consume: %v", err)
	}
	s.closed = conn.NotifyClose(make(chan *amqp.Error, 1))
	return s
}

// answer reads what the client sends and says what it needs to go on.
func (s *server) answer() {
	if _, err := io.CopyN(io.Discard, s.conn, 8); err != nil {
		return
	}
	_ = s.write(method(0, 10, 10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US"))
	for {
		var head [headBytes]byte
		if _, err := io.ReadFull(s.conn, head[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(s.conn, payload); err != nil {
			return
		}
		if head[0] != 1 {
			continue
		}
		switch binary.BigEndian.Uint32(payload) {
		case 10<<16 | 11:
			_ = s.write(method(0, 10, 30, "\x00\x00\x00\x00\x20\x00\x00\x00"))
		case 10<<16 | 40:
			_ = s.write(method(0, 10, 41, "\x00"))
		case 20<<16 | 10:
			_ = s.write(method(1, 20, 11, "\x00\x00\x00\x00"))
		case 60<<16 | 20:
			_ = s.write(method(1, 60, 21, "\x03tag"))
		}
	}
}

func (s *server) write(b []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := s.conn.Write(b)
	return err
}

// deliver sends a message with a body and returns what the client makes of it.
func (s *server) deliver(header []byte) amqp.Delivery {
	s.t.Helper()
	b := method(1, 60, 60, "\x03tag\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01q")
	b = append(b, header...)
	b = append(b, frame(3, 1, []byte("body"))...)
	if err := s.write(b); err != nil {
		s.t.Fatalf("the client has gone: %v", err)
	}
	select {
	case d, ok := <-s.deliveries:
		if !ok {
			s.t.Fatalf("the client has closed the connection: %v", <-s.closed)
		}
		if string(d.Body) != "body" {
			s.t.Fatalf("body %q", d.Body)
		}
		return d
	case <-time.After(patience):
		s.t.Fatal("no delivery")
	}
	return amqp.Delivery{}
}

func method(channel, class, id uint16, args string) []byte {
	p := binary.BigEndian.AppendUint16(nil, class)
	p = binary.BigEndian.AppendUint16(p, id)
	return frame(1, channel, append(p, args...))
}

func frame(kind byte, channel uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), frameEnd)
}

// header is a content header frame of a body of four bytes.
func header(flags uint16, properties []byte) []byte {
	p := []byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4}
	p = binary.BigEndian.AppendUint16(p, flags)
	return frame(frameHeader, 1, append(p, properties...))
}

// allProperties are a content header's with headers among them; both sides of them
// are filled.
func allProperties(headers []byte) []byte {
	p := append([]byte("\x0atext/plain\x04gzip"), table(headers)...)
	return append(p, "\x02\x05\x02co\x02re\x041000\x02id\x00\x00\x00\x00\x00\x00\x00\x07\x01t\x01u\x03app\x01c"...)
}

const allFlags = 0xFFFC

func table(entries []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(entries))), entries...)
}
