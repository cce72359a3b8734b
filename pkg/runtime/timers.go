package runtime

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/memory"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

const (
	// maxHeld bounds the memory of the held copies of all queues; at the bound originals wait
	// unsettled, which the prefetch bounds in turn.
	maxHeld = 20_000
	// maxReleasing bounds how many held copies of a queue are on their way at a
	// time, those that wait for another try included.
	maxReleasing = 64
	// heldRetryMin and heldRetryMax pace a held copy that cannot be sent: it
	// exists nowhere else, so it is tried until it is.
	heldRetryMin = time.Second
	heldRetryMax = 30 * time.Second
	// finishTimeout bounds the last try at a shutdown.
	finishTimeout = 5 * time.Second
)

// held is a copy that waits in the process.
type held struct {
	due   time.Time
	out   *outgoing
	share memory.Share // of its body
}

// timers holds the copies of one queue's originals that are already settled. A
// crash loses them; a graceful stop waits for them or publishes them early. Each
// queue has its own, so that copies that cannot be sent keep nobody else's back.
type timers struct {
	pub  sender
	log  *slog.Logger  // names the queue
	room chan struct{} // one per held copy; shared by all queues
	mem  *memory.Ceiling

	obs   Observer
	owner string // the queue's name

	mu     sync.Mutex
	queue  dueQueue
	hurry  bool          // everything is due
	rush   chan struct{} // closed with hurry: no pause goes on
	wake   chan struct{} // the head of the queue, or hurry, has changed
	idle   chan struct{} // closed and replaced when nothing is held any more
	inHand int           // held copies, those on their way included
}

func newTimers(pub sender, room chan struct{}, log *slog.Logger) *timers {
	return &timers{
		pub:  pub,
		log:  log,
		room: room,
		rush: make(chan struct{}),
		wake: make(chan struct{}, 1),
		idle: make(chan struct{}),
	}
}

// reserve makes room for one copy with a body of so many bytes, before its
// original is settled. It reports false when ctx or lost is done first.
func (t *timers) reserve(ctx, lost context.Context, body int) (memory.Share, bool) {
	select {
	case t.room <- struct{}{}:
	case <-ctx.Done():
		return memory.Share{}, false
	case <-lost.Done():
		return memory.Share{}, false
	}
	share, ok := t.mem.Take(int64(body), ctx.Done(), lost.Done())
	if !ok {
		<-t.room
	}
	return share, ok
}

// release gives back a reservation that is not used any more.
func (t *timers) release(share memory.Share) {
	t.mem.Give(share)
	<-t.room
}

// add holds a copy for which room was reserved.
func (t *timers) add(h held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.queue, h)
	t.inHand++
	tell(t.obs, CopyHeld{t.owner})
	t.signal()
}

func (t *timers) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// count is how many copies are held.
func (t *timers) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inHand
}

// run publishes each copy when it is due, until ctx is done. Copies that are
// still held then are lost, and counted in the log.
func (t *timers) run(ctx context.Context) {
	var sending sync.WaitGroup
	lanes := make(chan struct{}, maxReleasing)
	for {
		h, wait := t.pop()
		if h != nil {
			select {
			case lanes <- struct{}{}:
				sending.Go(func() {
					defer func() { <-lanes }()
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
	if n := t.count(); n > 0 {
		t.log.Error("stopped with delayed copies still held in the process; they are lost", keyCount, n)
	}
}

// pop returns a copy that is due, or how long until the next one is; a negative
// wait means that nothing is held.
func (t *timers) pop() (*held, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, -1
	}
	if wait := time.Until(t.queue[0].due); wait > 0 && !t.hurry {
		return nil, wait
	}
	h := heap.Pop(&t.queue).(held)
	return &h, 0
}

func (t *timers) put(h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.queue, *h)
}

// sleep waits until something may be due; it reports false when ctx is done.
func (t *timers) sleep(ctx context.Context, wait time.Duration) bool {
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
func (t *timers) send(ctx context.Context, h *held) {
	wait := backoff.New(heldRetryMin, heldRetryMax)
	rush := t.rush
	for {
		err := t.pub.publish(ctx, h.out)
		if err == nil {
			t.done(h)
			return
		}
		if ctx.Err() != nil {
			return
		}
		d := wait.Next()
		t.log.Error("held copy not delivered; trying again", keyTarget, h.out.Key, keyMessage, h.out.Publishing.MessageId,
			keyError, err, keyIn, d.Round(time.Millisecond))
		if !sleep(d, ctx.Done(), rush) {
			rush = nil
			wait.Reset()
		}
	}
}

func (t *timers) done(h *held) {
	t.release(h.share)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inHand--
	tell(t.obs, CopyReleased{t.owner})
	if t.inHand == 0 {
		close(t.idle)
		t.idle = make(chan struct{})
	}
}

// finish waits until nothing is held. When work ends first, what is left is
// published early, for a few seconds at most.
func (t *timers) finish(work context.Context) {
	if t.wait(work.Done()) {
		return
	}
	t.rushAll()
	limit := make(chan struct{})
	timer := time.AfterFunc(finishTimeout, func() { close(limit) })
	defer timer.Stop()
	t.wait(limit)
}

// rushAll makes every copy due, those to come included.
func (t *timers) rushAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hurry {
		return
	}
	t.hurry = true
	close(t.rush)
	if t.inHand > 0 {
		t.log.Warn("publishing held copies before their time: better early than lost", keyCount, t.inHand)
	}
	t.signal()
}

// wait reports whether nothing is held any more before stop is closed.
func (t *timers) wait(stop <-chan struct{}) bool {
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
type dueQueue []held

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds a held copy; package heap calls it.
func (q *dueQueue) Push(x any) { *q = append(*q, x.(held)) }

// Pop removes the last held copy; package heap calls it.
func (q *dueQueue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = held{}
	*q = (*q)[:last]
	return h
}
