package runtime

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// collecting is a batch of size that is being filled.
func collecting(t *testing.T, size int) *collector {
	b := &collector{batch: Batch{size, time.Hour}}
	t.Cleanup(func() { b.take() })
	return b
}

// come lets deliveries come in and returns those that wait.
func come(t *testing.T, o *order, b *collector, ds ...*delivery) (waiting []*delivery) {
	t.Helper()
	for _, d := range ds {
		switch o.join(stages{t.Context(), t.Context()}, b, d) {
		case first:
			b.add(d)
		case behind:
			waiting = append(waiting, d)
		case refused:
			t.Errorf("a delivery of %q was refused", d.key)
		}
	}
	return waiting
}

func TestABatchTakesEveryDeliveryOfItsKeysAndTheNextOnesFollowInOrder(t *testing.T) {
	t.Parallel()
	o, b := newOrder(), collecting(t, 4)
	a := []*delivery{keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a")}
	if w := come(t, o, b, a[0], a[1], keyed("")); w != nil {
		t.Fatalf("%d wait although nobody has their key", len(w))
	}
	running := b.take()
	if w := come(t, o, b, a[2:]...); len(w) != 5 {
		t.Fatalf("%d wait for the batch that has their key, want 5", len(w))
	}
	loose := []*delivery{keyed("b"), keyed(""), keyed("")}
	if w := come(t, o, b, loose...); w != nil {
		t.Errorf("%d of other keys, or none, wait", len(w))
	}
	if o.fill(b); len(b.held) != 3 {
		t.Error("a key was taken that still runs")
	}
	o.release(keysOf(running))
	<-o.freed
	if o.fill(b); !slices.Equal(b.held, []*delivery{loose[0], loose[1], loose[2], a[2]}) {
		t.Errorf("the next batch holds %d deliveries, want the one that came in third as its last", len(b.held))
	}
	running = b.take()
	if o.fill(b); len(b.held) != 0 {
		t.Error("what was left of a key runs beside its batch")
	}
	o.release(keysOf(running))
	if o.fill(b); !slices.Equal(b.held, a[3:]) {
		t.Errorf("the last batch holds %d deliveries, want what was left in order", len(b.held))
	}
	o.release(keysOf(b.take()))
	if len(o.waiting) != 0 || len(o.free) != 0 {
		t.Errorf("%d keys are kept after their last delivery", len(o.waiting))
	}
}

func TestAKeyWhoseDeliveriesWereTakenOutIsForgotten(t *testing.T) {
	t.Parallel()
	o, b := newOrder(), collecting(t, 4)
	come(t, o, b, keyed("a"))
	running := b.take()
	late := keyed("a")
	come(t, o, b, late)
	o.release(keysOf(running))
	if out := o.evict(late.sub); !slices.Equal(out, []*delivery{late}) {
		t.Fatalf("%d were taken out, want the one that waits", len(out))
	}
	if o.fill(b); len(b.held) != 0 || len(o.waiting) != 0 {
		t.Errorf("the batch holds %d, %d keys are kept; want none", len(b.held), len(o.waiting))
	}
}

func TestADeliveryThatHasWaitedForItsKeyMakesABatchDueByWhenItCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &collector{batch: Batch{3, 50 * time.Millisecond}}
		d := unsentDelivery()
		time.Sleep(30 * time.Millisecond)
		b.add(d)
		at := time.Now()
		<-b.waited()
		if waited := time.Since(at); waited != 20*time.Millisecond {
			t.Errorf("it was due after %v, want the 20 ms that were left", waited)
		}
	})
}

func TestNothingStartsOnASubscriptionThatHandsBackWhatItHas(t *testing.T) {
	t.Parallel()
	c := newConsumer(Queue{Concurrency: 1, Order: Order{By: OrderByRoutingKey}, Batch: Batch{Size: 2}, Prefetch: 2}, shared{log: slog.New(slog.DiscardHandler)})
	st := stages{t.Context(), t.Context()}
	d := unsentDelivery()
	for _, tt := range []struct {
		reason error
		over   bool
	}{{errServerCancelled, false}, {errPaused, true}} {
		d := unsentDelivery()
		d.sub.setReason(tt.reason)
		if got := c.over(st, d.sub); got != tt.over {
			t.Errorf("after %v: over() = %v, want %v", tt.reason, got, tt.over)
		}
	}
	if c.over(st, d.sub) {
		t.Error("over before anything has happened")
	}
	if d.sub.cancel(errors.New("lost")); !c.over(st, d.sub) {
		t.Error("not over after the channel has ended")
	}
}

// Whatever comes in, is taken and ends in whatever order: a key never runs in
// two batches, its deliveries start in the order they came in, and all start.
func TestOrderedBatchesKeepTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &batchModel{order: newOrder(), b: &collector{batch: Batch{rapid.IntRange(1, 5).Draw(rt, "size"), time.Hour}}, runs: map[string]int{}}
		defer m.b.take()
		st := stages{t.Context(), t.Context()}
		rt.Repeat(map[string]func(*rapid.T){
			"come": func(rt *rapid.T) {
				key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "key")
				if !m.b.full() { // else nothing is let in
					m.come(st, key)
				}
			},
			"run": func(rt *rapid.T) {
				if len(m.b.held) > 0 && len(m.running) < 3 { // there is a slot
					m.run(rt)
				}
			},
			"end": func(rt *rapid.T) {
				if len(m.running) > 0 {
					m.end(rapid.IntRange(0, len(m.running)-1).Draw(rt, "which"))
				}
			},
		})
		for len(m.running) > 0 || len(m.b.held) > 0 {
			if len(m.b.held) > 0 {
				m.run(rt)
			}
			m.end(0)
		}
		if m.started != m.came || len(m.order.waiting) != 0 {
			rt.Errorf("%d of %d have run, %d keys are kept", m.started, m.came, len(m.order.waiting))
		}
	})
}

// batchModel is a reader of deliveries and its running batches.
type batchModel struct {
	order         *order
	b             *collector
	running       [][]*delivery
	runs          map[string]int // the last number that ran, by key
	busy          []string       // keys that run
	came, started int
}

func (m *batchModel) come(st stages, key string) {
	m.came++
	d := keyed(key)
	d.MessageId = strconv.Itoa(m.came)
	if m.order.join(st, m.b, d) == first {
		m.b.add(d)
	}
	m.order.fill(m.b)
}

func (m *batchModel) run(rt *rapid.T) {
	ds := m.b.take()
	for _, key := range keysOf(ds) {
		if slices.Contains(m.busy, key) {
			rt.Errorf("key %s runs in two batches", key)
		}
		m.busy = append(m.busy, key)
	}
	for _, d := range ds {
		n, _ := strconv.Atoi(d.MessageId)
		if d.key != "" && n < m.runs[d.key] {
			rt.Errorf("delivery %d of %s runs after %d", n, d.key, m.runs[d.key])
		}
		m.runs[d.key] = n
	}
	m.started += len(ds)
	m.running = append(m.running, ds)
	m.order.fill(m.b)
}

func (m *batchModel) end(i int) {
	keys := keysOf(m.running[i])
	m.running = slices.Delete(m.running, i, i+1)
	m.busy = slices.DeleteFunc(m.busy, func(key string) bool { return slices.Contains(keys, key) })
	m.order.release(keys)
	m.order.fill(m.b)
}
