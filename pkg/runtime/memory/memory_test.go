package memory

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// never is a channel that is not closed.
var never <-chan struct{}

func quiet() {}

func TestWhatFitsDoesNotWait(t *testing.T) {
	t.Parallel()
	c := NewCeiling(10, func() { t.Error("full") })
	for _, n := range []int64{0, 4, 6, 0} {
		if _, ok := c.Take(n, never, never); !ok {
			t.Errorf("%d bytes were not to be had", n)
		}
	}
	if c.InUse() != 10 || c.Waits() != 0 {
		t.Errorf("%d bytes in use and %d waits, want 10 and 0", c.InUse(), c.Waits())
	}
}

func TestOneShareIsAboveTheCeilingAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewCeiling(10, quiet)
		var had, given sync.Map
		take := func(n int64) {
			go func() {
				s, _ := c.Take(n, never, never)
				given.Store(n, s)
				had.Store(n, true)
			}()
			synctest.Wait()
		}
		has := func(n int64) bool { _, ok := had.Load(n); return ok }
		give := func(n int64) {
			s, _ := given.Load(n)
			c.Give(s.(Share))
			synctest.Wait()
		}
		take(100)
		take(200)
		take(9)
		take(5)
		if !has(100) || has(200) || !has(9) || has(5) {
			t.Error("want the first above the ceiling and what fits beside it, and no more")
		}
		give(9)
		if has(200) || !has(5) {
			t.Error("want room below the ceiling to go to what fits")
		}
		give(100)
		if !has(200) {
			t.Error("want the next above the ceiling once the first is done")
		}
		if c.InUse() != 205 || c.Waits() != 2 {
			t.Errorf("%d bytes in use and %d waits, want 205 and 2", c.InUse(), c.Waits())
		}
	})
}

func TestWaitingEndsWithItsReason(t *testing.T) {
	t.Parallel()
	c := NewCeiling(10, quiet)
	over := make(chan struct{})
	close(over)
	first, _ := c.Take(20, never, never)
	for _, stops := range [][2]<-chan struct{}{{over, never}, {never, over}} {
		if _, ok := c.Take(20, stops[0], stops[1]); ok {
			t.Error("want nothing")
		}
	}
	c.Give(first)
	if s, ok := c.Take(20, over, never); !ok || s.bytes != 20 {
		t.Error("what is free is given even when a stop has come: the caller looks after it")
	}
}

// However many come and go, the limit and one share are never passed, everybody
// has a turn, and nothing is left in use.
func TestACeilingUnderLoad(t *testing.T) {
	t.Parallel()
	const limit, largest = 1000, 3000
	c := NewCeiling(limit, quiet)
	var inUse, most atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 300 {
				n := rand.Int64N(largest)
				if rand.IntN(2) == 0 {
					n /= 100
				}
				stop := make(chan struct{})
				if rand.IntN(4) == 0 {
					close(stop)
				}
				s, ok := c.Take(n, stop, never)
				if !ok {
					continue
				}
				now := inUse.Add(n)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				inUse.Add(-n)
				c.Give(s)
			}
		})
	}
	all.Wait()
	if most.Load() > limit+largest || c.InUse() != 0 || len(c.waiting) != 0 {
		t.Errorf("%d bytes at most, %d in use at the end, %d waiting", most.Load(), c.InUse(), len(c.waiting))
	}
}

func TestThatACeilingWasReachedIsSaidOnce(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	b := NewBodies(10, slog.New(slog.NewTextHandler(&text, nil)))
	for range 3 {
		s, _ := b.Handled().Take(11, never, never)
		b.Handled().Give(s)
	}
	b.Received(7)
	b.Received(5)
	b.Received(-7)
	if n := strings.Count(text.String(), "bytes=10"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, &text)
	}
	if got, want := b.Use(), (Use{Limit: 10, Unsettled: 5}); got != want {
		t.Errorf("in use: %+v, want %+v", got, want)
	}
}

func TestNoBodiesHaveNoLimit(t *testing.T) {
	t.Parallel()
	var b *Bodies
	s, ok := b.Handled().Take(1<<60, never, never)
	b.Handled().Give(s)
	b.Received(1)
	if _, held := b.Held().Take(1<<60, never, never); !ok || !held {
		t.Error("want everything")
	}
}
