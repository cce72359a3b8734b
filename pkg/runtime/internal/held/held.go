// Package held keeps copies in the process until their delay is over.
//
// Their originals are settled already, so a copy exists nowhere else: it is tried
// until it has arrived. A crash loses what is held; a graceful stop waits for it or
// publishes it early.
package held

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

const (
	// most bounds the memory of the held copies of all queues; at the bound originals
	// wait unsettled, which the prefetch bounds in turn.
	most = 20_000
	// The pauses between tries of a copy that cannot be sent.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// finishTimeout bounds the last try at a shutdown.
	finishTimeout = 5 * time.Second
)

// MaxReleasing bounds how many held copies of a queue are on their way at a time,
// those that wait for another try included.
const MaxReleasing = 64

// Room is for the held copies of all queues: one token for each.
type Room chan struct{}

// NewRoom returns room for 20,000 copies.
func NewRoom() Room { return make(Room, most) }

// Config is what [Timers] of copies of type T need.
type Config[T any] struct {
	// Publish returns nil once the copy has arrived.
	Publish func(context.Context, T) error
	// Name is where a copy goes and which message it is of, for the log.
	Name func(T) (target, messageID string)
	// Added and Released are told of each copy, in this order. They may not block.
	Added, Released func()
	Room            Room
	Memory          *memory.Ceiling // for the bodies; nil: no bound
	Log             *slog.Logger    // names the queue
}

// copyOf is a copy that waits.
type copyOf[T any] struct {
	due   time.Time
	item  T
	share memory.Share // of its body
}

// Timers holds the copies of one queue. Each queue has its own, so that copies that
// cannot be sent keep no other queue's back.
type Timers[T any] struct {
	cfg Config[T]

	mu     sync.Mutex
	queue  dueQueue[T]
	hurry  bool          // everything is due
	rush   chan struct{} // closed with hurry: no pause goes on
	wake   chan struct{} // the head of the queue, or hurry, has changed
	idle   chan struct{} // closed and replaced when nothing is held any more
	inHand int           // held copies, those on their way included
}

// New returns Timers that hold nothing.
func New[T any](cfg Config[T]) *Timers[T] {
	return &Timers[T]{cfg: cfg, rush: make(chan struct{}), wake: make(chan struct{}, 1), idle: make(chan struct{})}
}

// Reserve makes room for one copy with a body of so many bytes, before its
// original is settled. It reports false when ctx or lost is done first.
func (t *Timers[T]) Reserve(ctx, lost context.Context, body int) (memory.Share, bool) {
	select {
	case t.cfg.Room <- struct{}{}:
	case <-ctx.Done():
		return memory.Share{}, false
	case <-lost.Done():
		return memory.Share{}, false
	}
	share, ok := t.cfg.Memory.Take(int64(body), ctx.Done(), lost.Done())
	if !ok {
		<-t.cfg.Room
	}
	return share, ok
}

// Release gives back a reservation that is not used any more.
func (t *Timers[T]) Release(share memory.Share) {
	t.cfg.Memory.Give(share)
	<-t.cfg.Room
}

// Add holds a copy for which room was reserved.
func (t *Timers[T]) Add(due time.Time, item T, share memory.Share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.queue, copyOf[T]{due, item, share})
	t.inHand++
	t.cfg.Added()
	t.signal()
}

func (t *Timers[T]) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Count is how many copies are held.
func (t *Timers[T]) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inHand
}

// Run publishes each copy when it is due, until ctx is done. Copies that are
// still held then are lost, and counted in the log.
func (t *Timers[T]) Run(ctx context.Context) {
	var sending sync.WaitGroup
	places := make(chan struct{}, MaxReleasing)
	for {
		h, wait := t.pop()
		if h != nil {
			select {
			case places <- struct{}{}:
				sending.Go(func() {
					defer func() { <-places }()
					t.send(ctx, h)
				})
				continue
			case <-ctx.Done():
				t.put(h)
			}
		}
		if !t.sleep(ctx, wait) {
			break
		}
	}
	sending.Wait()
	if n := t.Count(); n > 0 {
		t.cfg.Log.Error("stopped with delayed copies still held in the process; they are lost", logkey.Count, n)
	}
}

// pop returns a copy that is due, or how long until the next one is; a negative
// wait means that nothing is held.
func (t *Timers[T]) pop() (*copyOf[T], time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, -1
	}
	if wait := time.Until(t.queue[0].due); wait > 0 && !t.hurry {
		return nil, wait
	}
	h := heap.Pop(&t.queue).(copyOf[T])
	return &h, 0
}

func (t *Timers[T]) put(h *copyOf[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.queue, *h)
}

// sleep waits until something may be due; it reports false when ctx is done.
func (t *Timers[T]) sleep(ctx context.Context, wait time.Duration) bool {
	var due <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-t.wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// send publishes a due copy, trying until it is confirmed or ctx is done.
func (t *Timers[T]) send(ctx context.Context, h *copyOf[T]) {
	wait := backoff.New(retryMin, retryMax)
	rush := t.rush
	for {
		err := t.cfg.Publish(ctx, h.item)
		if err == nil {
			t.done(h)
			return
		}
		if ctx.Err() != nil {
			return
		}
		d := wait.Next()
		target, id := t.cfg.Name(h.item)
		t.cfg.Log.Error("held copy not delivered; trying again", logkey.Target, target, logkey.MessageID, id,
			logkey.Error, err, logkey.RetryIn, d.Round(time.Millisecond))
		if !backoff.Sleep(d, ctx.Done(), rush) {
			rush = nil
			wait.Reset()
		}
	}
}

func (t *Timers[T]) done(h *copyOf[T]) {
	t.Release(h.share)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inHand--
	t.cfg.Released()
	if t.inHand == 0 {
		close(t.idle)
		t.idle = make(chan struct{})
	}
}

// Finish waits until nothing is held. When work ends first, what is left is
// published early, for a few seconds at most.
func (t *Timers[T]) Finish(work context.Context) {
	if t.wait(work.Done()) {
		return
	}
	t.Rush()
	limit := make(chan struct{})
	timer := time.AfterFunc(finishTimeout, func() { close(limit) })
	defer timer.Stop()
	t.wait(limit)
}

// Rush makes every copy due, those to come included.
func (t *Timers[T]) Rush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hurry {
		return
	}
	t.hurry = true
	close(t.rush)
	if t.inHand > 0 {
		t.cfg.Log.Warn("publishing held copies before their time: better early than lost", logkey.Count, t.inHand)
	}
	t.signal()
}

// wait reports whether nothing is held any more before stop is closed.
func (t *Timers[T]) wait(stop <-chan struct{}) bool {
	for {
		t.mu.Lock()
		n, idle := t.inHand, t.idle
		t.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-idle:
		case <-stop:
			return false
		}
	}
}

// dueQueue is a heap ordered by due time.
type dueQueue[T any] []copyOf[T]

func (q dueQueue[T]) Len() int           { return len(q) }
func (q dueQueue[T]) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueQueue[T]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds a held copy; package heap calls it.
func (q *dueQueue[T]) Push(x any) { *q = append(*q, x.(copyOf[T])) }

// Pop removes the last held copy; package heap calls it.
func (q *dueQueue[T]) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = copyOf[T]{}
	*q = (*q)[:last]
	return h
}
