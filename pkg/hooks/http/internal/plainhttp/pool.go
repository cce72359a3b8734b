package plainhttp

import (
	"slices"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// A pool keeps idle connections, the one used last at the end. It gives that
// one out first, so that those that are not needed grow old and are closed.
type pool struct {
	limit int

	mu     sync.Mutex
	idle   []*conn
	sweep  *time.Timer // set while connections are idle
	closed bool
}

// get returns an idle connection that is still open, or nil.
func (p *pool) get() *conn {
	for {
		c := p.pop()
		if c == nil {
			return nil
		}
		if time.Since(c.used) < exchange.IdleFor && c.alive() {
			return c
		}
		c.raw.Close()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

func (p *pool) put(c *conn) {
	c.used = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.limit || c.used.Sub(c.born) >= exchange.MaxAge {
		c.raw.Close()
		return
	}
	p.idle = append(p.idle, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(exchange.IdleFor, p.closeOld)
	}
}

// closeOld closes what has been idle too long.
func (p *pool) closeOld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].used) >= exchange.IdleFor {
		p.idle[old].raw.Close()
		old++
	}
	p.idle = slices.Delete(p.idle, 0, old)
	p.sweep = nil
	if len(p.idle) > 0 && !p.closed {
		p.sweep = time.AfterFunc(exchange.IdleFor-time.Since(p.idle[0].used), p.closeOld)
	}
}

// close closes every idle connection, and those in use once they come back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	for _, c := range p.idle {
		c.raw.Close()
	}
	p.idle = nil
}
