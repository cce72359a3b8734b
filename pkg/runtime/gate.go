package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	probeMin = 500 * time.Millisecond
	probeMax = 30 * time.Second
)

// gate stops a queue whose hook cannot be run, so that a broken host spends no
// attempts. While it is closed, one delivery at a time probes the hook, with
// growing pauses, and the others wait.
type gate struct {
	log   *slog.Logger // names the queue
	obs   Observer
	queue string

	mu      sync.Mutex
	closed  bool
	since   time.Time
	probing pass // 0: nobody
	last    pass // the highest number given out
	wait    *backoff
	changed chan struct{} // closed and replaced at each change
}

// pass lets a delivery try the hook. A probe has a number of its own, so that a
// hook that was running before the gate closed cannot end somebody's probe; 0 is
// the pass of an open gate.
type pass int

func newGate(log *slog.Logger) *gate {
	return &gate{log: log, wait: newBackoff(probeMin, probeMax), changed: make(chan struct{})}
}

var errStopped = errors.New("stopped while waiting")

// enter returns when the caller may try the hook. It gives up when stop or lost
// is done. A pass is ended by available, unavailable or leave.
func (g *gate) enter(stop, lost context.Context) (pass, error) {
	for {
		g.mu.Lock()
		if !g.closed {
			g.mu.Unlock()
			return 0, nil
		}
		if g.probing == 0 {
			g.last++
			p, d := g.last, g.wait.next()
			g.probing = p
			g.mu.Unlock()
			if !sleep(d, stop.Done(), lost.Done()) {
				g.leave(p)
				return 0, errStopped
			}
			return p, nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-stop.Done():
			return 0, errStopped
		case <-lost.Done():
			return 0, errStopped
		}
	}
}

// admits reports whether p still holds: the gate may have closed since an open
// one was passed.
func (g *gate) admits(p pass) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p != 0 || !g.closed
}

// leave gives p back unused and lets another delivery probe.
func (g *gate) leave(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(p)
}

// end ends p if it is the probe that is under way.
func (g *gate) end(p pass) {
	if p != 0 && p == g.probing {
		g.probing = 0
		g.signal()
	}
}

// unavailable closes the gate: the hook could not be run.
func (g *gate) unavailable(p pass, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(p)
	if !g.closed || p != 0 { // the others met the broken hook before the gate closed
		tell(g.obs, Paused{g.queue, err})
	}
	if !g.closed {
		g.closed, g.since = true, time.Now()
		g.wait.reset()
		g.log.Error("hook unavailable; queue paused, no attempt is spent", keyError, err)
		return
	}
	if p != 0 {
		g.log.Warn("hook still unavailable", keyError, err)
	}
}

// available opens the gate: the hook ran.
func (g *gate) available() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return
	}
	g.closed, g.probing = false, 0
	g.signal()
	tell(g.obs, Resumed{g.queue})
	g.log.Info("hook available again", keyPausedFor, time.Since(g.since).Round(time.Millisecond))
}

func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}
