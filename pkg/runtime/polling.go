package runtime

import (
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

const (
	// emptyLooks is how often a queue must be found empty, at growing distances that
	// begin with emptyLook, before it is: what a process had in hand that has just
	// died takes a moment to come back.
	emptyLooks = 4
	emptyLook  = 50 * time.Millisecond
)

// polling takes the messages of a queue one at a time with basic.get, each when
// the one before it is settled. A consumer with a prefetch of 1 would be cancelled
// with a message in hand to make way for one with more, and a quorum queue before
// RabbitMQ 4.3 does not take back what a cancelled consumer has in hand when the
// node of its connection dies: measured on 3.10.8 and 4.0.1, it stays unacked
// until the queue gets another leader. What basic.get has taken comes back.
type polling struct {
	next  chan struct{} // the message in hand is settled
	over  chan struct{} // no further one is wanted
	end   sync.Once
	empty bool // nothing was left; to be read once the deliveries have ended
}

func newPolling() *polling {
	return &polling{next: make(chan struct{}, 1), over: make(chan struct{})}
}

// settled asks for the next message. A nil polling has none.
func (p *polling) settled() {
	if p == nil {
		return
	}
	select {
	case p.next <- struct{}{}:
	default: // it has been asked for
	}
}

func (p *polling) stop() { p.end.Do(func() { close(p.over) }) }

// got is the answer to a basic.get.
type got struct {
	amqp.Delivery
	ok bool // the queue was not empty
}

func (p *polling) run(sub *subscription, g got, out chan<- amqp.Delivery, get func() (got, error)) {
	for looks := 0; ; {
		switch {
		case g.ok:
			looks = 0
			if !p.hand(sub, g.Delivery, out) {
				return
			}
		case looks == emptyLooks:
			p.empty = true
			sub.setReason(errOtherPrefetch)
			return
		case !backoff.Sleep(emptyLook<<looks, p.over, sub.ctx.Done()):
			return
		default:
			looks++
		}
		var err error
		if g, err = get(); err != nil {
			sub.setReason(err)
			return
		}
	}
}

// hand passes d on and waits until it is settled. It reports false when no further
// message is wanted.
func (p *polling) hand(sub *subscription, d amqp.Delivery, out chan<- amqp.Delivery) bool {
	select {
	case out <- d: // whoever reads does so up to the end
	case <-sub.ctx.Done():
		return false // the broker redelivers it
	}
	select {
	case <-p.next:
	case <-p.over:
		return false
	case <-sub.ctx.Done():
		return false
	}
	select {
	case <-p.over:
		return false
	default:
		return true
	}
}
