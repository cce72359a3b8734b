package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

const (
	// backoffMin and backoffMax bound the pause before a process is replaced by
	// another. The pause doubles while processes answer nothing.
	backoffMin = 100 * time.Millisecond
	backoffMax = 10 * time.Second
	// maxDiedUnread is how many processes in a row may end before they have read
	// anything until the command counts as broken.
	maxDiedUnread = 3
)

// pool has a fixed number of slots, each with a process or none. Processes are
// started when they are needed and then stay.
type pool struct {
	cmd      *process.Command
	queue    string
	grace    time.Duration // between SIGTERM and SIGKILL
	pipeline int           // calls that a process may have at a time
	endFor   time.Duration // of a process, after the end of its input

	mu      sync.Mutex
	slots   []*slot
	waiting []chan *slot // calls that found no room, in the order they came
	closed  bool
	lastEnd string // how the last process ended

	diedUnread atomic.Int32   // processes in a row that ended before they had read anything
	alive      sync.WaitGroup // one per process
}

// A slot is where one process runs, or none.
type slot struct {
	starting sync.Mutex // held while a process is being started

	// Guarded by the pool's mu.
	proc      *child // nil: none
	ending    bool   // the process is on its way out and takes nothing more
	load      int    // calls that hold this slot
	backoff   time.Duration
	notBefore time.Time // no process is started before; zero: at once
}

var errPoolClosed = errors.New("the worker is closed")

// acquire waits for room in a slot. An error means that no process has seen the
// delivery.
func (p *pool) acquire(ctx context.Context) (*slot, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errPoolClosed
	}
	if s := p.pick(); s != nil && len(p.waiting) == 0 {
		s.load++
		p.mu.Unlock()
		return s, nil
	}
	turn := make(chan *slot, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case s, open := <-turn:
		if !open {
			return nil, errPoolClosed
		}
		return s, nil
	case <-ctx.Done():
		p.giveUp(turn)
		return nil, p.noneFree(ctx.Err())
	}
}

func (p *pool) noneFree(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastEnd == "" {
		return fmt.Errorf("no process was free: %w", err)
	}
	return fmt.Errorf("no process was free: %w; the last one that is gone %s", err, p.lastEnd)
}

// giveUp takes a call out of the queue, or returns what it was just given.
func (p *pool) giveUp(turn chan *slot) {
	p.mu.Lock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	if s, open := <-turn; open {
		p.release(s)
	}
}

func (p *pool) release(s *slot) {
	p.mu.Lock()
	s.load--
	p.grant()
	p.mu.Unlock()
}

// grant gives room to the calls that wait for it.
func (p *pool) grant() {
	for len(p.waiting) > 0 {
		s := p.pick()
		if s == nil {
			return
		}
		s.load++
		p.waiting[0] <- s
		p.waiting = slices.Delete(p.waiting, 0, 1)
	}
}

// pick returns the slot with the fewest calls, one with a process before one
// without, or nil when all are full or backing off.
func (p *pool) pick() *slot {
	var best *slot
	for _, s := range p.slots {
		if s.load >= p.pipeline || s.ending || s.backingOff() {
			continue
		}
		if s.load == 0 && s.proc != nil {
			return s
		}
		if best == nil || s.load < best.load {
			best = s
		}
	}
	return best
}

func (s *slot) backingOff() bool {
	return s.proc == nil && !s.notBefore.IsZero() && time.Now().Before(s.notBefore)
}

// running returns the process of s, and starts one if there is none. An error
// means that it could not be started.
func (p *pool) running(ctx context.Context, s *slot) (*child, error) {
	p.mu.Lock()
	proc := s.proc
	p.mu.Unlock()
	if proc != nil {
		return proc, nil
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	p.mu.Lock()
	proc, closed := s.proc, p.closed
	if proc == nil && !closed {
		p.alive.Add(1)
	}
	p.mu.Unlock()
	switch {
	case proc != nil:
		return proc, nil
	case closed:
		return nil, errPoolClosed
	}
	return p.launch(ctx, s)
}

// launch puts a new process into s; the caller has counted it.
func (p *pool) launch(ctx context.Context, s *slot) (*child, error) {
	proc, err := startProcess(ctx, p, s)
	if err != nil {
		p.alive.Done()
		return nil, err
	}
	p.mu.Lock()
	s.proc, s.ending, s.notBefore = proc, false, time.Time{}
	closed := p.closed
	p.mu.Unlock()
	proc.begin()
	if closed {
		proc.endInput()
	}
	return proc, nil
}

// retire keeps calls away from a process that is about to end.
func (p *pool) retire(proc *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proc.slot.proc == proc {
		proc.slot.ending = true
	}
}

// An exitSummary is what a process did from start to end.
type exitSummary struct {
	answers    int
	diedUnread bool // it ended by itself and had read nothing
	clean      bool // it ended by itself with status 0 and left nothing unanswered
}

// replace frees the slot of a process that is gone. It returns how long the
// slot stays empty, and whether the command counts as broken.
func (p *pool) replace(proc *child, l exitSummary) (pause time.Duration, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.diedUnread {
		p.diedUnread.Add(1)
	}
	p.lastEnd = proc.why
	s := proc.slot
	s.proc, s.ending = nil, false
	pause = s.nextBackoff(l)
	if pause > 0 && !p.closed {
		s.notBefore = time.Now().Add(pause)
		time.AfterFunc(pause, p.wake)
	}
	p.grant()
	return pause, p.diedUnread.Load() >= maxDiedUnread
}

// nextBackoff says how long to wait before the next start. A process that has
// answered everything and ended with status 0 is replaced at once: many workers end themselves
// after so many messages.
func (s *slot) nextBackoff(l exitSummary) time.Duration {
	switch {
	case l.clean && l.answers > 0:
		s.backoff = 0
		return 0
	case l.answers > 0:
		s.backoff = backoffMin
	default:
		s.backoff = min(max(2*s.backoff, backoffMin), backoffMax)
	}
	return s.backoff/2 + rand.N(s.backoff/2)
}

// wake is called when the back-off of a slot is over.
func (p *pool) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant()
}

// close ends all processes and returns after the last one.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, turn := range p.waiting {
		close(turn)
	}
	p.waiting = nil
	var procs []*child
	for _, s := range p.slots {
		if s.proc != nil {
			procs = append(procs, s.proc)
		}
	}
	p.mu.Unlock()
	for _, proc := range procs {
		proc.endInput()
	}
	p.alive.Wait()
}
