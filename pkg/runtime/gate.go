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
	log *slog.Logger // names the queue

	mu      sync.Mutex
	closed  bool
	since   time.Time
	probing bool
	wait    *backoff
	changed chan struct{} // closed and replaced at each change
}

func newGate(log *slog.Logger) *gate {
	return &gate{log: log, wait: newBackoff(probeMin, probeMax), changed: make(chan struct{})}
}

var errStopped = errors.New("stopped while waiting")

// enter returns when the caller may try the hook. It gives up when stop or lost
// is done.
func (g *gate) enter(stop, lost context.Context) error {
	for {
		g.mu.Lock()
		if !g.closed {
			g.mu.Unlock()
			return nil
		}
		if !g.probing {
			g.probing = true
			d := g.wait.next()
			g.mu.Unlock()
			if !sleep(d, stop.Done(), lost.Done()) {
				g.leave()
				return errStopped
			}
			return nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-stop.Done():
			return errStopped
		case <-lost.Done():
			return errStopped
		}
	}
}

// leave lets another delivery probe.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.signal()
}

// unavailable closes the gate: the hook could not be run.
func (g *gate) unavailable(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.signal()
	if !g.closed {
		g.closed, g.since = true, time.Now()
		g.wait.reset()
		g.log.Error("hook unavailable; queue paused, no attempt is spent", keyError, err)
		return
	}
	g.log.Warn("hook still unavailable", keyError, err)
}

// available opens the gate: the hook ran.
func (g *gate) available() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return
	}
	g.closed, g.probing = false, false
	g.signal()
	g.log.Info("hook available again", "paused_for", time.Since(g.since).Round(time.Millisecond))
}

func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}
