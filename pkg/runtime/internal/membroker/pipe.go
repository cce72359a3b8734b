package membroker

import (
	"io"
	"net"
	"sync"
	"time"
)

// end is one end of a connection in memory. A write never waits.
type end struct {
	in, out *stream
}

// stream is one way of a connection.
type stream struct {
	mu     sync.Mutex
	more   *sync.Cond
	data   []byte
	closed bool
}

func newStream() *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.mu)
	return s
}

func pipe() (client, server *end) {
	up, down := newStream(), newStream()
	return &end{in: down, out: up}, &end{in: up, out: down}
}

func (e *end) Read(p []byte) (int, error) {
	s := e.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.data) == 0 && !s.closed {
		s.more.Wait()
	}
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	s := e.out
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.data = append(s.data, p...)
	s.more.Signal()
	return len(p), nil
}

// Close ends both ways; what is on its way may still be read.
func (e *end) Close() error {
	for _, s := range []*stream{e.in, e.out} {
		s.mu.Lock()
		s.closed = true
		s.more.Broadcast()
		s.mu.Unlock()
	}
	return nil
}

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }

func (e *end) LocalAddr() net.Addr              { return address{} }
func (e *end) RemoteAddr() net.Addr             { return address{} }
func (e *end) SetDeadline(time.Time) error      { return nil }
func (e *end) SetReadDeadline(time.Time) error  { return nil }
func (e *end) SetWriteDeadline(time.Time) error { return nil }
