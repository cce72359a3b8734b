// Package breaker pauses the calls of a handler that cannot be called, or that
// fails every time.
//
// A breaker is closed while calls go through. It opens when a call could not be
// made, or after so many failed ones in a row; then everything waits. After a pause
// it is half-open: one caller at a time tries, which closes it or lets it stay open.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// The pauses between tries while calls cannot be made: as long as that has been so,
// or down to half of it at random so that many processes do not come back at once,
// within these bounds. What waits is then late by no more than twice the trouble.
const (
	ProbeMin = 100 * time.Millisecond
	ProbeMax = 30 * time.Second
)

// The least that an operator sets RabbitMQ's consumer timeout to is 15 minutes at
// times, and a queue that counts takes a timeout for an attempt.
var usual = Limits{Waiting: 10 * time.Minute, Probing: 14 * time.Minute}

// UsualLimits are those that end before RabbitMQ's consumer timeout.
func UsualLimits() Limits { return usual }

// Why a caller of [Breaker.Enter] may not go on.
var (
	ErrStopped = errors.New("stopped while waiting")
	ErrPaused  = errors.New("the queue is paused; its deliveries were handed back")
)

// Settings are when a breaker opens. The zero Settings open it only for calls that
// could not be made.
type Settings struct {
	Failures int           // in a row, after which it opens; 0: never
	Cooldown time.Duration // from then to the first try
	Limits   Limits
	// Changed is told of every change while the breaker is locked; it may not call
	// the breaker. Nil is told nothing.
	Changed func(Change)
}

// Limits are how long a caller may wait at an open breaker, and how long the one that
// probes may. When they are 0 they are [UsualLimits].
type Limits struct{ Waiting, Probing time.Duration }

// A Change is one that the breaker goes through.
type Change struct {
	State State
	Still bool          // open, as it was before: a try has failed
	Fails bool          // the calls are made, and fail
	Err   error         // why it is open
	For   time.Duration // until the next try of an open one, how long a closed one was open
}

// State is whether calls go through.
type State int

// The states. Half-open is an open breaker for all but the one that tries.
const (
	Closed State = iota
	Open
)

// Token is the right to make a call. That of a try has a number of its own, so that
// a call that had begun before the breaker opened ends nobody else's try; 0 is the
// token of a closed breaker.
type Token int

// Breaker is safe for concurrent use.
type Breaker struct {
	settings Settings

	mu       sync.Mutex
	open     bool
	since    time.Time     // it is open
	failures int           // in a row
	probing  Token         // whose try is under way; 0: nobody's
	last     Token         // the highest given out
	away     time.Time     // since when calls could not be made; zero while they can
	probeAt  time.Time     // no try before
	changed  chan struct{} // closed and replaced at each change
}

// New returns a closed breaker.
func New(s Settings) *Breaker {
	if s.Limits == (Limits{}) {
		s.Limits = usual
	}
	return &Breaker{settings: s, changed: make(chan struct{})}
}

// Enter returns when the caller may make a call. It gives up with [ErrStopped] when
// stop or lost is done, and with [ErrPaused] when the caller has waited for too
// long; held is since when its deliveries are kept. A token is ended by Answered,
// Unavailable or Leave.
func (b *Breaker) Enter(stop, lost context.Context, held time.Time) (Token, error) {
	for {
		w := b.place(held)
		if w.changed == nil {
			return 0, nil
		}
		mayProbe, err := w.wait(stop, lost)
		if mayProbe {
			return w.token, nil
		}
		b.Leave(w.token)
		if err != nil {
			return 0, err
		}
	}
}

// waiting is what an open breaker has for a caller.
type waiting struct {
	token   Token           // 0: another one tries
	until   time.Time       // of the try, or when the caller has to go
	probes  bool            // at until
	changed <-chan struct{} // nil: the breaker is closed
}

// place lets the caller have the next try if nobody has it.
func (b *Breaker) place(held time.Time) waiting {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return waiting{}
	}
	if held.Before(b.since) {
		held = b.since
	}
	w := waiting{until: held.Add(b.settings.Limits.Waiting), changed: b.changed}
	if b.probing == 0 {
		b.last++
		b.probing, w.token = b.last, b.last
		w.until = held.Add(b.settings.Limits.Probing)
		if b.probeAt.Before(w.until) {
			w.until, w.probes = b.probeAt, true
		}
	}
	return w
}

// wait returns at the time of the try, or at a change.
func (w waiting) wait(stop, lost context.Context) (mayProbe bool, err error) {
	timer := time.NewTimer(time.Until(w.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		if !w.probes {
			return false, ErrPaused
		}
		return true, nil
	case <-w.changed:
		return false, nil
	case <-stop.Done():
	case <-lost.Done():
	}
	return false, ErrStopped
}

// Admits reports whether t still holds: the breaker may have opened since a closed
// one was passed.
func (b *Breaker) Admits(t Token) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return t != 0 || !b.open
}

// Leave gives t back unused and lets another caller try.
func (b *Breaker) Leave(t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endProbe(t)
}

func (b *Breaker) endProbe(t Token) {
	if t != 0 && t == b.probing {
		b.probing = 0
		b.signal()
	}
}

// Unavailable opens the breaker: the call could not be made.
func (b *Breaker) Unavailable(t Token, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wasOpen, applies := b.reopen(t)
	if !applies {
		return
	}
	if b.away.IsZero() {
		b.away = time.Now()
	}
	b.pause(Change{State: Open, Still: wasOpen, Err: err, For: untilProbe(time.Since(b.away))})
}

// untilProbe is how long to wait when calls have not been possible for a while.
func untilProbe(away time.Duration) time.Duration {
	d := min(max(away, ProbeMin), ProbeMax)
	return d - rand.N(d/2+1)
}

// Succeeded notes a call that has done its work.
func (b *Breaker) Succeeded(t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	b.close()
}

// Failed notes a call that was made and has failed, which opens the breaker after
// so many of them, and else closes it.
func (b *Breaker) Failed(t Token, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.settings.Failures <= 0 || b.failures < b.settings.Failures {
		b.close()
		return
	}
	if wasOpen, applies := b.reopen(t); applies {
		err := fmt.Errorf("%d failures in a row, the last: %s", b.failures, reason)
		b.pause(Change{State: Open, Still: wasOpen, Fails: true, Err: err, For: b.settings.Cooldown})
	}
}

// reopen opens the breaker, or ends the try that has failed. A call that had begun
// before it opened changes nothing; then it does not apply.
func (b *Breaker) reopen(t Token) (wasOpen, applies bool) {
	b.endProbe(t)
	if b.open && t == 0 {
		return true, false
	}
	wasOpen = b.open
	if !wasOpen {
		b.open, b.since = true, time.Now()
	}
	return wasOpen, true
}

func (b *Breaker) pause(c Change) {
	b.probeAt = time.Now().Add(c.For)
	b.tell(c)
}

func (b *Breaker) close() {
	if !b.open {
		return
	}
	b.open, b.probing, b.away = false, 0, time.Time{}
	b.signal()
	b.tell(Change{State: Closed, For: time.Since(b.since)})
}

func (b *Breaker) tell(c Change) {
	if b.settings.Changed != nil {
		b.settings.Changed(c)
	}
}

func (b *Breaker) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Changing returns what is closed at the next change of an open breaker; nil while
// it is closed.
func (b *Breaker) Changing() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return nil
	}
	return b.changed
}
