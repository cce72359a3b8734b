package keyorder

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestCollectorIsDueWhenItIsFullOrItsFirstDeliveryHasWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewCollector[*item](3, 50*time.Millisecond)
		if b.Waited() != nil {
			t.Error("an empty batch waits")
		}
		started := time.Now()
		b.Add(keyed(""))
		time.Sleep(30 * time.Millisecond)
		b.Add(keyed(""))
		<-b.Waited()
		if took := time.Since(started); took != 50*time.Millisecond {
			t.Errorf("it was due after %v, want 50 ms from its first delivery", took)
		}
		if n := len(b.Take()); n != 2 {
			t.Errorf("it held %d deliveries, want 2", n)
		}
		for i := range 3 {
			if b.Due() {
				t.Errorf("due with %d of 3", i)
			}
			b.Add(keyed(""))
		}
		if !b.Due() || !b.Full() {
			t.Error("a full batch is not due")
		}
		b.Take()
		if b.Due() || b.Waited() != nil {
			t.Error("the next batch is due before its first delivery")
		}
	})
}

// collecting is a batch of size that is being filled.
func collecting(t *testing.T, size int) *Collector[*item] {
	b := NewCollector[*item](size, time.Hour)
	t.Cleanup(func() { b.Take() })
	return b
}

// come lets deliveries come in and returns those that wait.
func come(t *testing.T, o *Order[*item], b *Collector[*item], ds ...*item) (waiting []*item) {
	t.Helper()
	for _, d := range ds {
		switch o.Join(b, d, goesOn) {
		case First:
			b.Add(d)
		case Behind:
			waiting = append(waiting, d)
		case Refused:
			t.Errorf("a delivery of %q was refused", d.key)
		}
	}
	return waiting
}

func TestCollectorTakesEveryDeliveryOfItsKeysAndTheNextOnesFollowInOrder(t *testing.T) {
	t.Parallel()
	o, b := New[*item](), collecting(t, 4)
	a := []*item{keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a"), keyed("a")}
	if w := come(t, o, b, a[0], a[1], keyed("")); w != nil {
		t.Fatalf("%d wait although nobody has their key", len(w))
	}
	running := b.Take()
	if w := come(t, o, b, a[2:]...); len(w) != 5 {
		t.Fatalf("%d wait for the batch that has their key, want 5", len(w))
	}
	loose := []*item{keyed("b"), keyed(""), keyed("")}
	if w := come(t, o, b, loose...); w != nil {
		t.Errorf("%d of other keys, or none, wait", len(w))
	}
	if o.Fill(b); len(b.held) != 3 {
		t.Error("a key was taken that still runs")
	}
	o.Release(Keys(running))
	<-o.Freed()
	if o.Fill(b); !slices.Equal(b.held, []*item{loose[0], loose[1], loose[2], a[2]}) {
		t.Errorf("the next batch holds %d deliveries, want the one that came in third as its last", len(b.held))
	}
	running = b.Take()
	if o.Fill(b); len(b.held) != 0 {
		t.Error("what was left of a key runs beside its batch")
	}
	o.Release(Keys(running))
	if o.Fill(b); !slices.Equal(b.held, a[3:]) {
		t.Errorf("the last batch holds %d deliveries, want what was left in order", len(b.held))
	}
	o.Release(Keys(b.Take()))
	if o.Kept() != 0 || len(o.free) != 0 {
		t.Errorf("%d keys are kept after their last delivery", o.Kept())
	}
}

func TestCollectorForgetsAKeyWhoseDeliveriesWereTakenOut(t *testing.T) {
	t.Parallel()
	o, b := New[*item](), collecting(t, 4)
	come(t, o, b, keyed("a"))
	running := b.Take()
	late := keyed("a")
	come(t, o, b, late)
	o.Release(Keys(running))
	if out := o.Evict(func(d *item) bool { return d == late }); !slices.Equal(out, []*item{late}) {
		t.Fatalf("%d were taken out, want the one that waits", len(out))
	}
	if o.Fill(b); len(b.held) != 0 || o.Kept() != 0 {
		t.Errorf("the batch holds %d, %d keys are kept; want none", len(b.held), o.Kept())
	}
}

func TestCollectorIsDueByWhenItsFirstDeliveryCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewCollector[*item](3, 50*time.Millisecond)
		d := keyed("")
		time.Sleep(30 * time.Millisecond)
		b.Add(d)
		at := time.Now()
		<-b.Waited()
		if waited := time.Since(at); waited != 20*time.Millisecond {
			t.Errorf("it was due after %v, want the 20 ms that were left", waited)
		}
	})
}

// Whatever comes in, is taken and ends in whatever order: a key never runs in
// two batches, its deliveries start in the order they came in, and all start.
func TestCollectorKeepsTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &batchModel{order: New[*item](), b: NewCollector[*item](rapid.IntRange(1, 5).Draw(rt, "size"), time.Hour), runs: map[string]int{}}
		defer m.b.Take()
		rt.Repeat(map[string]func(*rapid.T){
			"come": func(rt *rapid.T) {
				key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "key")
				if !m.b.Full() { // else nothing is let in
					m.come(key)
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
		if m.started != m.came || m.order.Kept() != 0 {
			rt.Errorf("%d of %d have run, %d keys are kept", m.started, m.came, m.order.Kept())
		}
	})
}

// batchModel is a reader of deliveries and its running batches.
type batchModel struct {
	order         *Order[*item]
	b             *Collector[*item]
	running       [][]*item
	runs          map[string]int // the last number that ran, by key
	busy          []string       // keys that run
	came, started int
}

func (m *batchModel) come(key string) {
	m.came++
	d := keyed(key)
	d.number = m.came
	if m.order.Join(m.b, d, goesOn) == First {
		m.b.Add(d)
	}
	m.order.Fill(m.b)
}

func (m *batchModel) run(rt *rapid.T) {
	ds := m.b.Take()
	for _, key := range Keys(ds) {
		if slices.Contains(m.busy, key) {
			rt.Errorf("key %s runs in two batches", key)
		}
		m.busy = append(m.busy, key)
	}
	for _, d := range ds {
		n := d.number
		if d.key != "" && n < m.runs[d.key] {
			rt.Errorf("delivery %d of %s runs after %d", n, d.key, m.runs[d.key])
		}
		m.runs[d.key] = n
	}
	m.started += len(ds)
	m.running = append(m.running, ds)
	m.order.Fill(m.b)
}

func (m *batchModel) end(i int) {
	keys := Keys(m.running[i])
	m.running = slices.Delete(m.running, i, i+1)
	m.busy = slices.DeleteFunc(m.busy, func(key string) bool { return slices.Contains(keys, key) })
	m.order.Release(keys)
	m.order.Fill(m.b)
}
