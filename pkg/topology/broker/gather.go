package broker

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPending is how many bytes may wait for the socket before a writer has to.
	maxPending = 64 << 10
	// keepPending is the largest buffer that is used again.
	keepPending = 256 << 10
	// lastWrite bounds how long Close waits for a broker that does not read.
	lastWrite = time.Second
)

// gatherConn sends what is written within a moment with one system call. The
// client library makes one per frame, and a settlement is a frame of 21 bytes:
// with small messages those calls cost more than the rest of the runtime.
//
// Write returns before the kernel has the bytes. One that fails closes the
// connection, and later Writes and Reads say why. Nothing is promised less than
// before: what the kernel has taken is lost with a connection all the same, and
// RabbitMQ redelivers what it has seen no settlement of.
type gatherConn struct {
	net.Conn
	gathers atomic.Bool   // until gather, writes go straight through
	wake    chan struct{} // tells the sender
	ended   chan struct{} // closed when the sender has ended

	mu      sync.Mutex
	room    sync.Cond // signals that pending was taken, or err set
	pending []byte
	err     error // nothing is sent any more
	closing bool
}

func newGatherConn(c net.Conn) *gatherConn {
	g := &gatherConn{Conn: c, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	g.room.L = &g.mu
	return g
}

// gather begins to send in the background, until Close or an error. No two
// Writes may overlap, which the client library sees to.
func (g *gatherConn) gather() {
	if !g.gathers.Swap(true) {
		go g.send()
	}
}

// Write implements [net.Conn].
func (g *gatherConn) Write(p []byte) (int, error) {
	if !g.gathers.Load() {
		return g.Conn.Write(p)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.pending) >= maxPending && g.err == nil {
		g.room.Wait()
	}
	if g.err != nil {
		return 0, g.err
	}
	g.pending = append(g.pending, p...)
	g.tellSender()
	return len(p), nil
}

func (g *gatherConn) tellSender() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Read implements [net.Conn].
func (g *gatherConn) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if err == nil {
		return n, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		err = g.err
	}
	return n, err
}

// Close implements [net.Conn]. What was written before is sent first.
func (g *gatherConn) Close() error {
	if g.gathers.Load() {
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		_ = g.Conn.SetWriteDeadline(time.Now().Add(lastWrite)) // fails when it is closed already
		g.tellSender()
		<-g.ended
	}
	return g.Conn.Close()
}

// send takes what is pending, all at once, again and again.
func (g *gatherConn) send() {
	defer close(g.ended)
	var batch []byte
	for range g.wake {
		runtime.Gosched() // writers that are ready too get into this batch
		var closing bool
		batch, closing = g.take(batch)
		if _, err := g.Conn.Write(batch); err != nil {
			g.fail(err)
			_ = g.Conn.Close() // ends a Read that waits
			return
		}
		if closing {
			g.fail(net.ErrClosed)
			return
		}
	}
}

// take returns what is pending and leaves the emptied buffer in its place.
func (g *gatherConn) take(used []byte) (batch []byte, closing bool) {
	if cap(used) > keepPending {
		used = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	batch, g.pending = g.pending, used[:0]
	g.room.Broadcast()
	return batch, g.closing
}

func (g *gatherConn) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.pending = err, nil
	g.room.Broadcast()
}
