package runtime

import (
	"hash/maphash"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rememberReturns is how many returned messages each of two generations holds.
const rememberReturns = 4096

// ownReturns remembers which messages this process has returned to its queue. It
// forgets the oldest.
type ownReturns struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]struct{}
}

func newOwnReturns() *ownReturns {
	return &ownReturns{seed: maphash.MakeSeed(), now: map[uint64]struct{}{}}
}

func (o *ownReturns) add(d *amqp.Delivery) {
	key := o.key(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.now) >= rememberReturns {
		o.old, o.now = o.now, map[uint64]struct{}{}
	}
	o.now[key] = struct{}{}
}

func (o *ownReturns) has(d *amqp.Delivery) bool {
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
func (o *ownReturns) key(d *amqp.Delivery) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	_, _ = h.WriteString(d.MessageId) // never fails
	_ = h.WriteByte(0)                // never fails
	_, _ = h.Write(d.Body)            // never fails
	return h.Sum64()
}
