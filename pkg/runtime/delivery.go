package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// delivery is one message handed to us, settled at most once and only on the
// channel it came on.
type delivery struct {
	amqp.Delivery
	sub     *subscription
	reading message.Reading
	arrived time.Time
	key     string
	ran     chan struct{} // gets a value once the hook has run; nil: nobody asks
	settled atomic.Bool
}

// Key is that of its order; "" when it has none.
func (d *delivery) Key() string { return d.key }

// Arrived is when it was received.
func (d *delivery) Arrived() time.Time { return d.arrived }

var errSettledTwice = errors.New("delivery is already settled")

// settle sends the one frame that ends the delivery. An error means that the
// broker will redeliver it.
func (d *delivery) settle(s settle.Step) error {
	return d.once(func() error {
		switch s := s.(type) {
		case settle.Ack:
			return d.sub.ch.Ack(d.DeliveryTag, false)
		case settle.Reject:
			return d.sub.ch.Reject(d.DeliveryTag, s.Requeue)
		}
		return fmt.Errorf("%T does not settle a delivery", s)
	})
}

// handBack returns a delivery that no hook has seen. It is the only use of
// basic.nack: from RabbitMQ 4.3 on, a quorum queue does not count it as an
// attempt.
func (d *delivery) handBack() error {
	return d.once(func() error { return d.sub.ch.Nack(d.DeliveryTag, false, true) })
}

// hasRun tells who asks that the hook has run, or will not.
func (d *delivery) hasRun() {
	select {
	case d.ran <- struct{}{}:
	default:
	}
}

func (d *delivery) once(send func() error) error {
	if !d.settled.CompareAndSwap(false, true) {
		return errSettledTwice
	}
	if err := d.sub.err(); err != nil {
		return err
	}
	return send()
}
