// Package recall is what a process remembers of messages that it has had in hand.
package recall

import (
	"hash/maphash"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// mostAcks and ackLife bound what is remembered of acks that could not be sent.
const (
	mostAcks = 10_000
	ackLife  = 30 * time.Minute
)

// LostAcks remembers deliveries whose hook succeeded and whose ack could not be
// sent, so that the redelivery is acked without running the hook again: 10,000 of
// them, each for half an hour. A message without message_id is not remembered:
// nothing tells it from another. It is safe for concurrent use.
type LostAcks struct {
	seed maphash.Seed

	mu   sync.Mutex
	acks map[ackKey]time.Time
}

// ackKey names one message. The hash guards against producers that give two
// messages one id.
type ackKey struct {
	id   string
	body uint64
}

// NewLostAcks returns an empty memory.
func NewLostAcks() *LostAcks {
	return &LostAcks{seed: maphash.MakeSeed(), acks: map[ackKey]time.Time{}}
}

// Remember reports whether d could be remembered.
func (l *LostAcks) Remember(d *amqp.Delivery) bool {
	if d.MessageId == "" {
		return false
	}
	key := l.key(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.acks) >= mostAcks {
		l.forget()
	}
	if len(l.acks) >= mostAcks {
		return false
	}
	l.acks[key] = time.Now()
	return true
}

// Take reports whether d is remembered, and forgets it.
func (l *LostAcks) Take(d *amqp.Delivery) bool {
	if d.MessageId == "" {
		return false
	}
	l.mu.Lock()
	empty := len(l.acks) == 0
	l.mu.Unlock()
	if empty {
		return false // the usual case: no hashing
	}
	key := l.key(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := l.acks[key]
	delete(l.acks, key)
	return found && time.Since(at) < ackLife
}

func (l *LostAcks) key(d *amqp.Delivery) ackKey {
	return ackKey{d.MessageId, maphash.Bytes(l.seed, d.Body)}
}

func (l *LostAcks) forget() {
	for key, at := range l.acks {
		if time.Since(at) >= ackLife {
			delete(l.acks, key)
		}
	}
}
