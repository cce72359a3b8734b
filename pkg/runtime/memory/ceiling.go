package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Ceiling lets so many bytes be in use at a time, and one share above them.
// What finds no room under the ceiling is the one above it, or waits for either.
// So nothing is too large to be had, what fits is never kept back by what does
// not, and in use are at most the limit and one more share. The nil Ceiling has no
// limit.
type Ceiling struct {
	limit int64
	full  func() // called when something does not fit

	used  atomic.Int64 // below the ceiling
	waits atomic.Int64 // how often something had to wait

	mu      sync.Mutex
	above   int64 // bytes of the share above the ceiling
	taken   bool  // there is one
	waiting []*waiter
	queued  atomic.Int64 // len(waiting)
}

// A Share is what Take has given; the zero Share is nothing.
type Share struct {
	bytes int64
	above bool
}

type waiter struct {
	bytes int64
	turn  chan Share // takes one without a reader
}

// NewCeiling returns a ceiling of so many bytes. It calls full, which must return
// at once, whenever something finds no room under it.
func NewCeiling(limit int64, full func()) *Ceiling { return &Ceiling{limit: limit, full: full} }

// Take waits for a share of n bytes; it reports false when one of the channels is
// closed first. Whoever has a share must not wait for another one.
func (c *Ceiling) Take(n int64, stop, lost <-chan struct{}) (Share, bool) {
	if c == nil || c.fits(n) {
		return Share{bytes: n}, true
	}
	c.full()
	w := c.join(n)
	select {
	case s := <-w.turn:
		return s, true
	default:
	}
	c.waits.Add(1)
	select {
	case s := <-w.turn:
		return s, true
	case <-stop:
	case <-lost:
	}
	if !c.leave(w) {
		c.Give(<-w.turn) // it came at the last moment
	}
	return Share{}, false
}

// Give returns a share.
func (c *Ceiling) Give(s Share) {
	if c == nil || s == (Share{}) {
		return
	}
	if !s.above {
		c.used.Add(-s.bytes)
		if c.queued.Load() == 0 {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.above {
		c.taken, c.above = false, 0
	}
	c.grant()
}

// fits takes n bytes under the ceiling if there are as many.
func (c *Ceiling) fits(n int64) bool {
	for {
		used := c.used.Load()
		if used+n > c.limit {
			return false
		}
		if c.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// join lets n wait; it may have its turn at once.
func (c *Ceiling) join(n int64) *waiter {
	w := &waiter{bytes: n, turn: make(chan Share, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, w)
	c.queued.Store(int64(len(c.waiting))) // before it looks for room: who gives some back now sees it
	c.grant()
	return w
}

// leave reports whether w was still waiting.
func (c *Ceiling) leave(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.waiting)
	c.waiting = slices.DeleteFunc(c.waiting, func(o *waiter) bool { return o == w })
	c.queued.Store(int64(len(c.waiting)))
	return len(c.waiting) < before
}

// grant gives turns, in the order of arrival, to all that fit and to one above
// them.
func (c *Ceiling) grant() {
	c.waiting = slices.DeleteFunc(c.waiting, func(w *waiter) bool {
		switch {
		case c.fits(w.bytes):
			w.turn <- Share{bytes: w.bytes}
		case !c.taken:
			c.taken, c.above = true, w.bytes
			w.turn <- Share{bytes: w.bytes, above: true}
		default:
			return false
		}
		return true
	})
	c.queued.Store(int64(len(c.waiting)))
}

// InUse is how many bytes are in use.
func (c *Ceiling) InUse() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Load() + c.above
}

// Waits is how often something had to wait.
func (c *Ceiling) Waits() int64 { return c.waits.Load() }
