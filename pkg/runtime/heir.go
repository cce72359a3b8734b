package runtime

import (
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// heirRetry is how long to wait before the next try to open an heir.
const heirRetry = 5 * time.Second

// heirs keeps a queue consumed that the broker deletes when nobody consumes it:
// a consumer that has to go in a pause is followed by one that is there before.
type heirs struct {
	mu         sync.Mutex
	of         *subscription // whose heir sub is
	sub        *subscription
	deliveries <-chan amqp.Delivery
}

// take returns the heir of s, if there is one that lives.
func (h *heirs) take(s *session) (*subscription, <-chan amqp.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub, deliveries := h.sub, h.deliveries
	if sub == nil || sub.session != s || sub.err() != nil {
		return nil, nil
	}
	h.sub, h.deliveries = nil, nil
	return sub, deliveries
}

// open sees to it that sub has an heir.
func (h *heirs) open(sub *subscription, subscribe func() (*subscription, <-chan amqp.Delivery, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == sub || sub.resting() {
		return nil
	}
	heir, deliveries, err := subscribe()
	if err == nil {
		h.of, h.sub, h.deliveries = sub, heir, deliveries
	}
	return err
}

// rest ends the deliveries of a queue that has been paused for so long that
// nothing may be kept, and reports whether they end. They stay when the queue would
// go with its consumer and another one cannot be had.
func (c *consumer) rest(st stages, sub *subscription, err error) bool {
	if errors.Is(err, errPaused) && c.q.GoesUnused {
		err := c.heirs.open(sub, func() (*subscription, <-chan amqp.Delivery, error) { return c.subscribe(st, sub.session) })
		if err != nil && !st.stopping() && sub.err() == nil {
			c.warned.rarely("queue paused for long; its messages are kept, since it goes when nobody consumes it and a second consumer cannot be had", logkey.Error, err)
			return !backoff.Sleep(heirRetry, st.intake.Done(), sub.ctx.Done())
		}
	}
	sub.rest(err)
	return true
}
