package runtime

import (
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// successors keeps a queue consumed that the broker deletes when nobody consumes it:
// a consumer that has to go in a pause is followed by one that is there before.
type successors struct {
	mu         sync.Mutex
	of         *subscription // whose successor sub is
	sub        *subscription
	deliveries <-chan amqp.Delivery
}

// take returns the successor of s, if there is one that lives.
func (h *successors) take(s *session) (*subscription, <-chan amqp.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub, deliveries := h.sub, h.deliveries
	if sub == nil || sub.session != s || sub.err() != nil {
		return nil, nil
	}
	h.sub, h.deliveries = nil, nil
	return sub, deliveries
}

// open sees to it that sub has an successor.
func (h *successors) open(sub *subscription, subscribe func() (*subscription, <-chan amqp.Delivery, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == sub || sub.resting() {
		return nil
	}
	successor, deliveries, err := subscribe()
	if err == nil {
		h.of, h.sub, h.deliveries = sub, successor, deliveries
	}
	return err
}

// successorRetry is how long to wait before the next try to open an successor.
const successorRetry = 5 * time.Second

// rest ends the deliveries of a queue that has been paused for so long that
// nothing may be kept, and reports whether they end. They stay when the queue would
// go with its consumer and another one cannot be had.
func (r *subscriber) rest(st lifetimes, sub *subscription, err error) bool {
	if errors.Is(err, breaker.ErrPaused) && r.q.GoesUnused {
		err := r.successors.open(sub, func() (*subscription, <-chan amqp.Delivery, error) { return r.subscribe(st, sub.session) })
		if err != nil && !st.stopping() && sub.err() == nil {
			r.warned.rarely("queue paused for long; its messages are kept, since it goes when nobody consumes it and a second consumer cannot be had", logkey.Error, err)
			return !backoff.Sleep(successorRetry, st.intake.Done(), sub.ctx.Done())
		}
	}
	sub.rest(err)
	return true
}
