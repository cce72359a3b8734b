package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// batchOrderHook is an orderHook for batches: each key of a call runs as long as
// the call does.
type batchOrderHook struct {
	*orderHook
	calls, several atomic.Int64 // in all, and with more than one message of a key
}

func (h *batchOrderHook) HandleBatch(ms []hooks.Message) ([]hooks.Outcome, error) {
	h.calls.Add(1)
	out := make([]hooks.Outcome, len(ms))
	entered := map[string]bool{}
	for i, m := range ms {
		key, _ := m.Headers["key"].(string)
		n, _ := strconv.Atoi(m.MessageID)
		if entered[key] {
			h.leave(key) // one after the other within a call
			h.several.Add(1)
		}
		h.enter(key, n, m.Attempt == 1 && !m.Redelivered)
		entered[key] = true
		out[i] = hooks.Outcome{Verdict: hooks.Ack}
		if m.Attempt == 1 && h.retries[m.MessageID] {
			out[i] = hooks.Outcome{Verdict: hooks.Retry, Reason: "as told"}
		}
	}
	for key := range entered {
		h.leave(key)
	}
	return out, nil
}

// endings counts how deliveries end.
type endings struct {
	mu       sync.Mutex
	received int
	settled  map[Ending]int
}

func (e *endings) Observe(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch event := event.(type) {
	case Received:
		e.received++
	case Settled:
		if e.settled == nil {
			e.settled = map[Ending]int{}
		}
		e.settled[event.Ending]++
	}
}

func (e *endings) of(which Ending) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settled[which]
}

func (e *endings) in() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.received
}

// inBatches is a queue whose deliveries of one key are ordered, in batches.
func inBatches(q string, kind settle.Type, h hooks.Hook, b Batch) Queue {
	queue := byKey(q, kind, h)
	queue.Concurrency, queue.Prefetch, queue.Batch = 4, 8*b.Size, b
	return queue
}

func TestOrderedBatchesRunAKeyOneAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, keys := range []int{1, 7, 100} {
			t.Run(fmt.Sprintf("%s with %d keys", kind, keys), func(t *testing.T) {
				t.Parallel()
				const messages = 2000
				inMemory(t, func(t *testing.T, b *bench) {
					q := b.keyedQueue(kind, messages, keys)
					h := &batchOrderHook{orderHook: newOrderHook()}
					h.retries["500"], h.retries["501"], h.retries["1200"] = true, true, true
					cfg := b.config(inBatches(q, kind, recordBatches(h.HandleBatch), Batch{16, 5 * time.Millisecond}))
					var ends endings
					cfg.Observer = &ends
					run := b.start(cfg)
					b.eventually("an ack of each message", func() bool { return ends.of("ack") == messages })
					if err := run.stop(); err != nil {
						t.Errorf("Run() = %v", err)
					}
					h.verdict(t, messages+3)
					if lost, back := ends.of(EndedLost), ends.of(EndedHandedBack); lost+back != 0 {
						t.Errorf("%d deliveries were lost and %d handed back, want none", lost, back)
					}
					if keys == 1 && h.several.Load() == 0 {
						t.Error("no call had two messages of the only key")
					}
					if n := b.ready(q); n != 0 {
						t.Errorf("%d messages are left", n)
					}
				})
			})
		}
	}
}

func TestOrderedBatchesKeepTheirOrderWhileTheHookCannotBeRun(t *testing.T) {
	t.Parallel()
	const messages = 300
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Quorum, messages, 5)
		h := &batchOrderHook{orderHook: newOrderHook()}
		var tries atomic.Int64
		hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
			if tries.Add(1) <= 3 {
				return nil, errGone
			}
			return h.HandleBatch(ms)
		})
		cfg := b.config(inBatches(q, settle.Quorum, hook, Batch{16, 5 * time.Millisecond}))
		var ends endings
		cfg.Observer = &ends
		run := b.start(cfg)
		b.eventually("an ack of each message", func() bool { return ends.of("ack") == messages })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		h.verdict(t, messages)
	})
}

// heldBatches is a hook that says when a call starts, and acks when finish is
// closed.
func heldBatches() (hook *batchRecorder, started, finish chan struct{}) {
	started, finish = make(chan struct{}, 10), make(chan struct{})
	hook = recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
		started <- struct{}{}
		<-finish
		return ackAll(ms)
	})
	return hook, started, finish
}

func TestDrainHandsBackWhatWaitsForTheKeyOfABatch(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Classic, 10, 1)
		hook, started, finish := heldBatches()
		cfg := b.config(inBatches(q, settle.Classic, hook, Batch{3, time.Hour}))
		var ends endings
		cfg.Observer = &ends
		run := b.start(cfg)
		<-started
		b.eventually("the others to be delivered", func() bool { return ends.in() == 10 })
		run.drain()
		b.eventually("them to be handed back while the batch still runs", func() bool { return ends.of(EndedHandedBack) == 7 })
		close(finish)
		if err := run.wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.calls; len(got) != 1 || !slices.Equal(got[0], []string{"0", "1", "2"}) {
			t.Errorf("called with %q, want one call with 0, 1 and 2", got)
		}
		if n := ends.of("ack"); n != 3 {
			t.Errorf("%d acks, want 3", n)
		}
	})
}

func TestKeyWaitsForABatchThatALostConnectionHasLeftRunning(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Classic, 5, 1)
		hook, started, finish := heldBatches()
		cfg := b.config(inBatches(q, settle.Classic, hook, Batch{3, 10 * time.Millisecond}))
		var ends endings
		cfg.Observer = &ends
		conns := consumeConns(&cfg)
		run := b.start(cfg)
		<-started
		held := hook.sizes()[0]
		b.eventually("each message to be delivered", func() bool { return ends.in() == 5 })
		_ = (<-conns).Close()
		b.eventually("each to be delivered again", func() bool { return ends.in() == 10 })
		if n := len(started); n != 0 {
			t.Errorf("%d batches were started beside the one that was left", n)
		}
		close(finish)
		b.eventually("each to be acked", func() bool { return ends.of("ack") == 5 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if n := b.log.count("acked without running the handler again: it has succeeded"); n != held {
			t.Errorf("%d messages were acked without another run, want the %d of the batch that was left", n, held)
		}
		if seen := slices.Concat(hook.calls...); !slices.Equal(seen, []string{"0", "1", "2", "3", "4"}) {
			t.Errorf("the handler saw %q, want each message once and in order", seen)
		}
	})
}

func TestQueueThatIsDeletedLeavesNothingWaitingForAKey(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Classic, 10, 1)
		hook, started, finish := heldBatches()
		cfg := b.config(inBatches(q, settle.Classic, hook, Batch{3, time.Hour}))
		var ends endings
		cfg.Observer = &ends
		run := b.start(cfg)
		<-started
		b.eventually("the others to be delivered", func() bool { return ends.in() == 10 })
		b.delete(q)
		b.eventually("those that wait to be given up", func() bool { return ends.of(EndedHandedBack)+ends.of(EndedLost) == 7 })
		close(finish)
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.sizes(); !slices.Equal(got, []int{3}) {
			t.Errorf("calls with %v messages, want one with 3", got)
		}
	})
}
