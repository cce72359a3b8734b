package runtime

import (
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/backoff"
)

const (
	paceMin = time.Second
	paceMax = 30 * time.Second
	// warnEvery is how often one warning of a queue is logged at most.
	warnEvery = time.Minute
	// rememberAcks and rememberFor bound what is remembered of acks that could
	// not be sent.
	rememberAcks = 10_000
	rememberFor  = 30 * time.Minute
)

// pace spaces out what fails again and again, however many deliveries fail at
// the same time.
type pace struct {
	mu    sync.Mutex
	wait  *backoff.Backoff
	grown time.Time // when the step last grew
}

func newPace() *pace { return &pace{wait: backoff.New(paceMin, paceMax)} }

// next is how long to wait before the next try. Failures that come together
// count as one.
func (p *pace) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.grown) < p.wait.Step() {
		return p.wait.Again()
	}
	p.grown = now
	return p.wait.Next()
}

func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait.Reset()
}

// warnings keeps a queue's warnings from filling the log.
type warnings struct {
	log *slog.Logger

	mu         sync.Mutex
	last       map[string]time.Time
	suppressed map[string]int
}

func newWarnings(log *slog.Logger) *warnings {
	return &warnings{log: log, last: map[string]time.Time{}, suppressed: map[string]int{}}
}

// rarely logs text at most once in warnEvery, with how many were left out.
func (w *warnings) rarely(text string, attrs ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if last, seen := w.last[text]; seen && now.Sub(last) < warnEvery {
		w.suppressed[text]++
		return
	}
	if n := w.suppressed[text]; n > 0 {
		attrs = append(attrs, keyNotLogged, n)
	}
	w.last[text], w.suppressed[text] = now, 0
	w.log.Warn(text, attrs...)
}

// once logs text once in the run, with the first problem met.
func (w *warnings) once(text, problem string, attrs ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.last[text]; seen {
		return
	}
	w.last[text] = time.Now()
	w.log.Warn(text, append(attrs, keyReason, problem)...)
}

// lostAcks remembers deliveries whose hook succeeded and whose ack could not be
// sent, so that the redelivery is acked without running the hook again. A
// message without message_id is not remembered: nothing tells it from another.
type lostAcks struct {
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

func newLostAcks() *lostAcks {
	return &lostAcks{seed: maphash.MakeSeed(), acks: map[ackKey]time.Time{}}
}

// remember reports whether d could be remembered.
func (l *lostAcks) remember(d *amqp.Delivery) bool {
	if d.MessageId == "" {
		return false
	}
	key := l.key(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.acks) >= rememberAcks {
		l.forget()
	}
	if len(l.acks) >= rememberAcks {
		return false
	}
	l.acks[key] = time.Now()
	return true
}

// take reports whether d is remembered, and forgets it.
func (l *lostAcks) take(d *amqp.Delivery) bool {
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
	return found && time.Since(at) < rememberFor
}

func (l *lostAcks) key(d *amqp.Delivery) ackKey {
	return ackKey{d.MessageId, maphash.Bytes(l.seed, d.Body)}
}

func (l *lostAcks) forget() {
	for key, at := range l.acks {
		if time.Since(at) >= rememberFor {
			delete(l.acks, key)
		}
	}
}
