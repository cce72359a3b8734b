package plainhttp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// idleConn returns a connection and whether it has been closed.
func idleConn(t *testing.T) (c *conn, closed func() bool) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return newConn(ours), func() bool {
		return ours.SetDeadline(time.Time{}) != nil
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	t.Run("gives out the connection used last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{limit: 2}
			defer p.close()
			a, _ := idleConn(t)
			b, _ := idleConn(t)
			p.put(a)
			p.put(b)
			if got := p.get(); got != b {
				t.Error("the first one came out first")
			}
			if got := p.get(); got != a {
				t.Error("the other one did not come out")
			}
			if got := p.get(); got != nil {
				t.Error("a connection came out twice")
			}
		})
	})
	t.Run("closes what nobody needs, and only that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{limit: 2}
			defer p.close()
			a, aClosed := idleConn(t)
			b, bClosed := idleConn(t)
			p.put(a)
			time.Sleep(exchange.IdleFor / 2)
			p.put(b)
			time.Sleep(exchange.IdleFor * 3 / 4)
			if !aClosed() || bClosed() {
				t.Errorf("closed: %t and %t, want only the first", aClosed(), bClosed())
			}
			time.Sleep(exchange.IdleFor)
			if !bClosed() {
				t.Error("the second one is still open")
			}
		})
	})
	t.Run("keeps no more than its limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{limit: 1}
			defer p.close()
			a, aClosed := idleConn(t)
			b, bClosed := idleConn(t)
			p.put(a)
			p.put(b)
			if aClosed() || !bClosed() {
				t.Errorf("closed: %t and %t, want only the second", aClosed(), bClosed())
			}
		})
	})
	t.Run("gives up a connection that is always busy after its greatest age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{limit: 1}
			defer p.close()
			a, closed := idleConn(t)
			for range int(exchange.MaxAge / time.Second) {
				if closed() {
					t.Fatal("closed too early")
				}
				p.put(a)
				time.Sleep(time.Second)
				p.get()
			}
			if p.put(a); !closed() {
				t.Error("still open")
			}
		})
	})
	t.Run("closes all, and what comes back later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{limit: 2}
			a, aClosed := idleConn(t)
			b, bClosed := idleConn(t)
			p.put(a)
			p.close()
			p.put(b)
			if !aClosed() || !bClosed() {
				t.Errorf("closed: %t and %t, want both", aClosed(), bClosed())
			}
		})
	})
}
