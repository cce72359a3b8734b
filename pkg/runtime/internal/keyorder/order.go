// Package keyorder keeps deliveries that share a key from running at the same time.
//
// [Order] is for deliveries that run one by one: the first of a key has the turn, and
// the others follow in the order they came in. With a [Collector] they run in
// batches: a key belongs to one batch at a time, from the moment that its first
// delivery is collected until its handler has answered, and that batch may hold
// several of its deliveries.
package keyorder

import (
	"slices"
	"sync"
	"time"
)

// Delivery is what is ordered: a pointer to something that knows its key, "" for
// none, and when it came in.
type Delivery interface {
	comparable
	Key() string
	Arrived() time.Time
}

// Order holds the deliveries that wait for one with the same key. A key costs an
// entry while one of its deliveries is in hand, and no goroutine. An Order is safe
// for concurrent use.
type Order[D Delivery] struct {
	mu      sync.Mutex
	waiting map[string][]D // a key is there while one of its deliveries runs

	// With batches:
	free  []string      // keys of waiting of which nothing runs
	freed chan struct{} // holds a token when free may have grown
}

// New returns an Order in which nothing waits.
func New[D Delivery]() *Order[D] {
	return &Order[D]{waiting: map[string][]D{}, freed: make(chan struct{}, 1)}
}

// Position is what became of a delivery that came in.
type Position int

// The positions.
const (
	First   Position = iota // it may run
	Behind                  // it waits, and Leave or Fill will return it
	Refused                 // nothing may wait any more
)

// Enter gives d a position. Ended is asked while nothing else enters or is evicted:
// what waits after it has become true would wait for ever.
func (o *Order[D]) Enter(d D, ended func() bool) Position {
	key := d.Key()
	if key == "" {
		return First
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	queue, running := o.waiting[key]
	switch {
	case !running:
		o.waiting[key] = nil
		return First
	case ended():
		return Refused
	}
	o.waiting[key] = append(queue, d)
	return Behind
}

// Leave ends d's turn and returns the delivery whose turn it is now, if there is one.
func (o *Order[D]) Leave(d D) (next D, ok bool) {
	key := d.Key()
	if key == "" {
		return next, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.waiting[key]
	if len(queue) == 0 {
		delete(o.waiting, key)
		return next, false
	}
	var none D
	next, queue[0] = queue[0], none // its memory must not live as long as the key
	o.waiting[key] = queue[1:]
	return next, true
}

// Evict takes out what waits and matches; those of a key are in their order.
func (o *Order[D]) Evict(matches func(D) bool) []D {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []D
	for key, queue := range o.waiting {
		o.waiting[key] = slices.DeleteFunc(queue, func(d D) bool {
			if matches(d) {
				out = append(out, d)
				return true
			}
			return false
		})
	}
	return out
}

// Kept is how many keys are known: those that run, and those that something waits for.
func (o *Order[D]) Kept() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}
