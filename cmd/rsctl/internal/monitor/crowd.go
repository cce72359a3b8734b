package monitor

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// patientFor is how long an answer may be under way before its connection can be
// closed for a new one.
const patientFor = 5 * time.Second

// crowd bounds the connections of a server. A new one takes the place of one that
// is idle, has not asked yet or does not take its answer, the oldest first; when
// there is none, the new one is closed. So nobody who keeps connections keeps
// others out.
type crowd struct {
	most int

	mu    sync.Mutex
	conns map[net.Conn]*guest
}

// guest is one connection.
type guest struct {
	since time.Time // of what it does
	doing doing
}

// doing is what a connection does; the lower, the sooner it has to go.
type doing int

const (
	idling doing = iota
	asking
	answering
)

func newCrowd(most int) *crowd { return &crowd{most: most, conns: map[net.Conn]*guest{}} }

// state is a [http.Server.ConnState].
func (c *crowd) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew:
		c.enter(conn)
	case http.StateActive:
		c.set(conn, asking)
	case http.StateIdle:
		c.set(conn, idling)
	case http.StateClosed, http.StateHijacked:
		delete(c.conns, conn)
	}
}

// enter makes room for a connection; c.mu is held.
func (c *crowd) enter(conn net.Conn) {
	if len(c.conns) >= c.most {
		victim := c.victim(time.Now())
		if victim == nil {
			_ = conn.Close() // the server notices when it reads
			return
		}
		delete(c.conns, victim)
		_ = victim.Close()
	}
	c.conns[conn] = &guest{time.Now(), asking}
}

// victim is the connection that has to go for a new one; nil is none.
func (c *crowd) victim(now time.Time) net.Conn {
	var victim net.Conn
	var worst *guest
	for conn, g := range c.conns {
		if g.doing == answering && now.Sub(g.since) < patientFor {
			continue
		}
		if worst == nil || g.doing < worst.doing || g.doing == worst.doing && g.since.Before(worst.since) {
			victim, worst = conn, g
		}
	}
	return victim
}

// set notes what a connection does, unless it had to go; c.mu is held.
func (c *crowd) set(conn net.Conn, d doing) {
	if g := c.conns[conn]; g != nil {
		g.since, g.doing = time.Now(), d
	}
}

type connKey struct{}

// context is a [http.Server.ConnContext]: it lets wrap know the connection.
func (*crowd) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// wrap notes when a request has been read and is being answered.
func (c *crowd) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			c.mu.Lock()
			c.set(conn, answering)
			c.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}
