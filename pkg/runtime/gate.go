package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

const (
	probeMin = 500 * time.Millisecond
	probeMax = 30 * time.Second
	// handBackAfter is how long deliveries wait at a closed gate. RabbitMQ closes
	// the channel of one that is unacknowledged for 30 minutes, and on a quorum
	// queue counts that as an attempt; operators set it to 15 minutes at times.
	handBackAfter = 10 * time.Minute
	// probeFor is how long one delivery stays for the probes after that.
	probeFor = 14 * time.Minute
)

// Breaker pauses a queue after Failures retries or failed hooks in a row, with no
// ack or drop between them. After Cooldown one delivery tries the hook, and again
// after each that fails. The zero Breaker never does.
type Breaker struct {
	Failures int
	Cooldown time.Duration
}

// gate stops a queue whose hook cannot be run, so that a broken host spends no
// attempts, or whose breaker has tripped. While it is closed, one delivery at a
// time probes the hook, and the others wait.
type gate struct {
	log     *slog.Logger // names the queue
	obs     Observer
	queue   string
	breaker Breaker
	limits  holdLimits

	mu       sync.Mutex
	closed   bool
	since    time.Time
	failures int  // in a row
	probing  pass // 0: nobody
	last     pass // the highest number given out
	wait     *backoff
	next     time.Time     // no probe before
	changed  chan struct{} // closed and replaced at each change
}

// holdLimits are how long a delivery may be kept while the gate is closed.
type holdLimits struct{ waiting, probing time.Duration }

// pass lets a delivery try the hook. A probe has a number of its own, so that a
// hook that was running before the gate closed cannot end somebody's probe; 0 is
// the pass of an open gate.
type pass int

func newGate(log *slog.Logger, b Breaker) *gate {
	return &gate{
		log: log, breaker: b, limits: holdLimits{handBackAfter, probeFor},
		wait: newBackoff(probeMin, probeMax), changed: make(chan struct{}),
	}
}

var (
	errStopped = errors.New("stopped while waiting")
	errPaused  = errors.New("the queue is paused; its deliveries were handed back")
)

// enter returns when the caller may try the hook. It gives up when stop or lost
// is done, and with errPaused when the delivery has been kept for too long; held
// is since when its subscription has had deliveries. A pass is ended by answered,
// unavailable or leave.
func (g *gate) enter(stop, lost context.Context, held time.Time) (pass, error) {
	for {
		t := g.turn(held)
		if t.changed == nil {
			return 0, nil
		}
		its, err := t.rest(stop, lost)
		if its {
			return t.pass, nil
		}
		g.leave(t.pass)
		if err != nil {
			return 0, err
		}
	}
}

// turn is what a closed gate has for a delivery.
type turn struct {
	pass    pass            // 0: it waits
	until   time.Time       // of the probe, or when the delivery has to go
	probes  bool            // at until
	changed <-chan struct{} // nil: the gate is open
}

// turn lets the caller probe if nobody does.
func (g *gate) turn(held time.Time) turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return turn{}
	}
	if held.Before(g.since) {
		held = g.since
	}
	t := turn{until: held.Add(g.limits.waiting), changed: g.changed}
	if g.probing == 0 {
		g.last++
		g.probing, t.pass = g.last, g.last
		t.until = held.Add(g.limits.probing)
		if g.next.Before(t.until) {
			t.until, t.probes = g.next, true
		}
	}
	return t
}

// rest waits for the probe, or for a change; its says that the probe may run.
func (t turn) rest(stop, lost context.Context) (its bool, err error) {
	timer := time.NewTimer(time.Until(t.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		if !t.probes {
			return false, errPaused
		}
		return true, nil
	case <-t.changed:
		return false, nil
	case <-stop.Done():
	case <-lost.Done():
	}
	return false, errStopped
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

// shut closes the gate, or keeps it closed after its probe has failed; wasOpen
// says which. A hook that was running when it closed changes nothing, and
// then news is false.
func (g *gate) shut(p pass, err error) (wasOpen, news bool) {
	g.end(p)
	if g.closed && p == 0 {
		return false, false
	}
	tell(g.obs, Paused{g.queue, err})
	wasOpen = !g.closed
	if wasOpen {
		g.closed, g.since = true, time.Now()
	}
	return wasOpen, true
}

// unavailable closes the gate: the hook could not be run.
func (g *gate) unavailable(p pass, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch wasOpen, news := g.shut(p, err); {
	case !news:
		return
	case wasOpen:
		g.wait.reset()
		g.log.Error("handler unavailable; queue paused, no attempt is spent", keyError, err)
	default:
		g.log.Warn("handler still unavailable", keyError, err)
	}
	g.next = time.Now().Add(g.wait.next())
}

// answered opens the gate, since the hook ran, unless the breaker trips.
func (g *gate) answered(p pass, o hooks.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.Verdict == hooks.Ack || o.Verdict == hooks.Drop {
		g.failures = 0
	} else {
		g.failures++
	}
	if g.breaker.Failures > 0 && g.failures >= g.breaker.Failures {
		g.trip(p, fmt.Errorf("%d failures in a row, the last: %s", g.failures, o.Reason))
		return
	}
	if !g.closed {
		return
	}
	g.closed, g.probing = false, 0
	g.signal()
	tell(g.obs, Resumed{g.queue})
	g.log.Info("handler available again", keyPausedFor, time.Since(g.since).Round(time.Millisecond))
}

// trip closes the gate for the breaker's time.
func (g *gate) trip(p pass, err error) {
	switch wasOpen, news := g.shut(p, err); {
	case !news:
		return
	case wasOpen:
		g.log.Error("handler fails every time; queue paused", keyError, err, keyIn, g.breaker.Cooldown)
	default:
		g.log.Warn("handler still fails; queue stays paused", keyError, err, keyIn, g.breaker.Cooldown)
	}
	g.next = time.Now().Add(g.breaker.Cooldown)
}

func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// closing returns what is closed at the next change; nil while the gate is open.
func (g *gate) closing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return nil
	}
	return g.changed
}
