package recall

import (
	"hash/maphash"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// mostReturns is how many returned messages each of two generations holds.
const mostReturns = 4096

// Returns remembers which messages this process has returned to its queue. It
// forgets the oldest, after 4,096 at the earliest. It is safe for concurrent use.
type Returns struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]struct{}
}

// NewReturns returns an empty memory.
func NewReturns() *Returns {
	return &Returns{seed: maphash.MakeSeed(), now: map[uint64]struct{}{}}
}

// Add remembers d.
func (o *Returns) Add(d *amqp.Delivery) {
	key := o.key(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.now) >= mostReturns {
		o.old, o.now = o.now, map[uint64]struct{}{}
	}
	o.now[key] = struct{}{}
}

// Has reports whether d, or a message that is like it, is remembered.
func (o *Returns) Has(d *amqp.Delivery) bool {
	o.mu.Lock()
	none := len(o.now) == 0
	o.mu.Unlock()
	if none {
		return false // no hashing
	}
	key := o.key(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	_, now := o.now[key]
	_, old := o.old[key]
	return now || old
}

// key tells messages apart by their id and body. Two that are alike are taken for
// one: a suspect may then go unseen.
func (o *Returns) key(d *amqp.Delivery) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	_, _ = h.WriteString(d.MessageId) // never fails
	_ = h.WriteByte(0)                // never fails
	_, _ = h.Write(d.Body)            // never fails
	return h.Sum64()
}
