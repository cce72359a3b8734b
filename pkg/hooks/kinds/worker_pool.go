package kinds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// restMin and restMax bound the pause before a process is replaced by
	// another. The pause doubles while processes answer nothing.
	restMin = 100 * time.Millisecond
	restMax = 10 * time.Second
	// maxStillborn is how many processes in a row may end before they have read
	// anything until the command counts as broken.
	maxStillborn = 3
)

// workerPool has a fixed number of slots, each with a process or none. Processes are
// started when they are needed and then stay.
type workerPool struct {
	cmd      *command
	pipeline int
	endFor   time.Duration // of a process, after the end of its input

	mu      sync.Mutex
	slots   []*slot
	waiting []chan *slot // calls that found no room, in the order they came
	closed  bool
	lastEnd string // how the last process ended

	stillborn atomic.Int32   // processes in a row that ended before they had read anything
	alive     sync.WaitGroup // one per process
}

// slot is the place of one process.
type slot struct {
	starting sync.Mutex // held while a process is being started

	// Guarded by the pool's mu.
	proc   *process // nil: none
	ending bool     // the process is on its way out and takes nothing more
	load   int      // calls that hold this slot
	rest   time.Duration
	until  time.Time // no process is started before; zero: at once
}

var errPoolClosed = errors.New("the worker is closed")

func newWorkerPool(c *command, processes, pipeline int) *workerPool {
	p := &workerPool{cmd: c, pipeline: pipeline, endFor: endFor}
	for range processes {
		p.slots = append(p.slots, &slot{})
	}
	return p
}

// acquire waits for room in a slot. An error means that no process has seen the
// delivery.
func (p *workerPool) acquire(ctx context.Context) (*slot, error) {
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

func (p *workerPool) noneFree(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastEnd == "" {
		return fmt.Errorf("no process was free: %w", err)
	}
	return fmt.Errorf("no process was free: %w; the last one that is gone %s", err, p.lastEnd)
}

// giveUp takes a call out of the queue, or returns what it was just given.
func (p *workerPool) giveUp(turn chan *slot) {
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

func (p *workerPool) release(s *slot) {
	p.mu.Lock()
	s.load--
	p.grant()
	p.mu.Unlock()
}

// grant gives room to the calls that wait for it.
func (p *workerPool) grant() {
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
// without, or nil when all are full or resting.
func (p *workerPool) pick() *slot {
	var best *slot
	for _, s := range p.slots {
		if s.load >= p.pipeline || s.ending || s.resting() {
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

func (s *slot) resting() bool {
	return s.proc == nil && !s.until.IsZero() && time.Now().Before(s.until)
}

// running returns the process of s, and starts one if there is none. An error
// means that it could not be started.
func (p *workerPool) running(ctx context.Context, s *slot) (*process, error) {
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
func (p *workerPool) launch(ctx context.Context, s *slot) (*process, error) {
	proc, err := startProcess(ctx, p, s)
	if err != nil {
		p.alive.Done()
		return nil, err
	}
	p.mu.Lock()
	s.proc, s.ending, s.until = proc, false, time.Time{}
	closed := p.closed
	p.mu.Unlock()
	proc.begin()
	if closed {
		proc.endInput()
	}
	return proc, nil
}

// retire keeps calls away from a process that is about to end.
func (p *workerPool) retire(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proc.slot.proc == proc {
		proc.slot.ending = true
	}
}

// A life is what a process did from start to end.
type life struct {
	answers   int
	stillborn bool // it ended by itself and had read nothing
	clean     bool // it ended by itself with status 0 and left nothing unanswered
}

// replace frees the slot of a process that is gone. It returns how long the
// slot rests, and whether the command counts as broken.
func (p *workerPool) replace(proc *process, l life) (rest time.Duration, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.stillborn {
		p.stillborn.Add(1)
	}
	p.lastEnd = proc.why
	s := proc.slot
	s.proc, s.ending = nil, false
	rest = s.restAfter(l)
	if rest > 0 && !p.closed {
		s.until = time.Now().Add(rest)
		time.AfterFunc(rest, p.wake)
	}
	p.grant()
	return rest, p.stillborn.Load() >= maxStillborn
}

// restAfter says how long to wait before the next start. A process that has
// answered and gone in peace is replaced at once: many workers end themselves
// after so many messages.
func (s *slot) restAfter(l life) time.Duration {
	switch {
	case l.clean && l.answers > 0:
		s.rest = 0
		return 0
	case l.answers > 0:
		s.rest = restMin
	default:
		s.rest = min(max(2*s.rest, restMin), restMax)
	}
	return s.rest/2 + rand.N(s.rest/2)
}

// wake is called when a slot has rested.
func (p *workerPool) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant()
}

// close ends all processes and returns after the last one.
func (p *workerPool) close() {
	p.mu.Lock()
	p.closed = true
	for _, turn := range p.waiting {
		close(turn)
	}
	p.waiting = nil
	var procs []*process
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
