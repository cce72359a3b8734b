package runtime

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

// errCrowded ends a subscription whose prefetch is taken by parked messages.
var errCrowded = errors.New("messages that have nowhere to go take its places")

// keepAside keeps a delivery unsettled for long, and gets the queue other places in
// its stead: a new subscription, while this one keeps what it has.
func (r *subscriber) keepAside(st lifetimes, d *delivery) {
	pause := parkedBeyond
	if r.parked.Add(1) <= maxParked {
		pause = parkedFor
		if int(d.sub.parked.Add(1)) >= max(1, r.q.Prefetch/2) && r.replaceable(st, d.sub) {
			d.sub.setReason(errCrowded)
			r.stopConsuming(d.sub)
		}
	}
	backoff.Sleep(pause, r.asked(st).Done(), d.sub.ctx.Done()) // a stop has nothing to run here
	r.parked.Add(-1)
}

// replaceable reports whether another subscription can follow sub: not on a queue
// that belongs to its connection, and on one that goes with its last consumer only
// when the next one is there before.
func (r *subscriber) replaceable(st lifetimes, sub *subscription) bool {
	switch {
	case r.q.Declare != nil:
		return false
	case !r.q.GoesUnused:
		return true
	}
	return r.successors.open(sub, func() (*subscription, <-chan amqp.Delivery, error) { return r.subscribe(st, sub.session) }) == nil
}
