package broker

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// gathered returns a gatherConn that gathers, and the other end of its connection.
func gathered(t *testing.T) (g *gatherConn, other net.Conn) {
	t.Helper()
	ours, other := net.Pipe() // takes a Write when the other end reads it
	g = newGatherConn(ours)
	g.gather()
	t.Cleanup(func() { _ = other.Close(); _ = g.Close() })
	return g, other
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		t.Errorf("Write(%.20q) = %d, %v", text, n, err)
	}
}

// next is what one Write has sent.
func next(t *testing.T, r io.Reader) string {
	t.Helper()
	buf := make([]byte, 4*maxPending)
	n, err := r.Read(buf)
	if err != nil {
		t.Errorf("Read() = %v", err)
	}
	return string(buf[:n])
}

func TestWritesThatWaitAreSentTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, other := gathered(t)
		write(t, g, "a")
		synctest.Wait() // the sender waits for the other end
		write(t, g, "b")
		write(t, g, "cd")
		if first, second := next(t, other), next(t, other); first != "a" || second != "bcd" {
			t.Errorf("sent %q and %q, want a and bcd", first, second)
		}
	})
}

func TestWritesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	g, other := gathered(t)
	var want bytes.Buffer
	for i := range 20_000 {
		want.Write(bytes.Repeat([]byte{byte(i)}, i%97))
	}
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(other)
		got <- all
	}()
	for rest, i := want.Bytes(), 0; len(rest) > 0; i++ {
		n := min(len(rest), 1+i%211)
		write(t, g, string(rest[:n]))
		rest = rest[n:]
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if all := <-got; !bytes.Equal(all, want.Bytes()) {
		t.Errorf("%d bytes arrived that are not the %d sent", len(all), want.Len())
	}
}

func TestWritesWaitForABrokerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, other := gathered(t)
		write(t, g, "a")
		synctest.Wait()
		write(t, g, string(make([]byte, maxPending)))
		written := make(chan struct{})
		go func() { write(t, g, "b"); close(written) }()
		synctest.Wait()
		select {
		case <-written:
			t.Error("a full buffer takes more")
		default:
		}
		next(t, other)
		next(t, other)
		<-written
		if got := next(t, other); got != "b" {
			t.Errorf("sent %q, want b", got)
		}
	})
}

func TestCloseDoesNotWaitForABrokerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := gathered(t)
		write(t, g, string(make([]byte, maxPending)))
		synctest.Wait()
		write(t, g, string(make([]byte, maxPending)))
		ended := make(chan error)
		go func() {
			_, err := g.Write([]byte("a")) // waits for room
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		_ = g.Close()
		if took := time.Since(began); took != lastWrite {
			t.Errorf("Close() took %v, want %v", took, lastWrite)
		}
		if err := <-ended; err == nil {
			t.Error("a Write that waited for a closed connection succeeded")
		}
	})
}

func TestAFailedWriteEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, other := net.Pipe()
		broken := errors.New("broken pipe")
		g := newGatherConn(failingConn{ours, broken})
		g.gather()
		write(t, g, "a") // fails later
		if _, err := g.Read(make([]byte, 1)); !errors.Is(err, broken) {
			t.Errorf("Read() = %v, want what the write ended with", err)
		}
		if _, err := g.Write([]byte("b")); !errors.Is(err, broken) {
			t.Errorf("Write() = %v, want what the one before ended with", err)
		}
		if _, err := other.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is still open")
		}
		_ = g.Close()
	})
}

type failingConn struct {
	net.Conn
	err error
}

func (c failingConn) Write([]byte) (int, error) { return 0, c.err }

func TestWritesGoStraightThroughUntilGather(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	ours, other := net.Pipe()
	defer other.Close()
	g := newGatherConn(failingConn{ours, broken})
	if _, err := g.Write([]byte("a")); !errors.Is(err, broken) {
		t.Errorf("Write() = %v, want the connection's own error", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
