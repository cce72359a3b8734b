package keyorder

import (
	"slices"
	"testing"
	"time"
)

// item is a delivery.
type item struct {
	key    string
	number int
	came   time.Time
}

func (d *item) Key() string        { return d.key }
func (d *item) Arrived() time.Time { return d.came }

// keyed is a delivery of a key that comes in now.
func keyed(key string) *item { return &item{key: key, came: time.Now()} }

// goesOn is asked whether nothing may wait any more.
func goesOn() bool { return false }

func TestOrderGivesTheTurnToOneOfAKeyAndTheOthersFollow(t *testing.T) {
	t.Parallel()
	o := New[*item]()
	a, b := []*item{keyed("a"), keyed("a"), keyed("a")}, keyed("b")
	if p := o.Enter(a[0], goesOn); p != First {
		t.Fatalf("the first of a key: %v", p)
	}
	for _, d := range a[1:] {
		if p := o.Enter(d, goesOn); p != Behind {
			t.Fatalf("another of the key: %v", p)
		}
	}
	if p := o.Enter(b, goesOn); p != First {
		t.Errorf("the first of another key: %v", p)
	}
	for i := range 2 {
		if p := o.Enter(keyed(""), goesOn); p != First {
			t.Errorf("delivery %d without a key: %v", i, p)
		}
	}
	for i := range 2 {
		if d, ok := o.Leave(a[i]); !ok || d != a[i+1] {
			t.Errorf("after delivery %d the turn does not go to the one that came in behind it", i)
		}
	}
	for _, last := range []*item{a[2], b, keyed("")} {
		if _, ok := o.Leave(last); ok {
			t.Errorf("after the last of %q another has the turn", last.key)
		}
	}
	if n := o.Kept(); n != 0 {
		t.Errorf("%d keys are kept after their last delivery", n)
	}
}

func TestOrderRefusesWhatWouldWaitOnceNothingMay(t *testing.T) {
	t.Parallel()
	o := New[*item]()
	ended := func() bool { return true }
	if p := o.Enter(keyed("k"), ended); p != First {
		t.Errorf("the first of its key: %v, want First: it need not wait", p)
	}
	if p := o.Enter(keyed("k"), ended); p != Refused {
		t.Errorf("the second: %v, want Refused", p)
	}
}

func TestOrderEvictsAndLeavesTheOthersInOrder(t *testing.T) {
	t.Parallel()
	o := New[*item]()
	running := keyed("k")
	o.Enter(running, goesOn)
	gone := []*item{keyed("k"), keyed("k")}
	stays := []*item{keyed("k"), keyed("k")}
	for _, d := range slices.Concat(gone, stays) {
		o.Enter(d, goesOn)
	}
	if out := o.Evict(func(d *item) bool { return slices.Contains(gone, d) }); !slices.Equal(out, gone) {
		t.Errorf("Evict() returned %d deliveries, want the 2 that match", len(out))
	}
	for i, d := range []*item{running, stays[0]} {
		if next, ok := o.Leave(d); !ok || next != stays[i] {
			t.Errorf("turn %d does not go to the one that stays and came in first", i)
		}
	}
}
