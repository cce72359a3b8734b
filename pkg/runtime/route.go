package runtime

import (
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// route looks whether the dead-letter queue of a quorum queue is there. The
// server moves a spent message there by itself, at most once: without the queue
// it drops the message and tells nobody, so it must not be asked to.
type route struct {
	queue string

	mu     sync.Mutex
	conn   *amqp.Connection
	ch     *amqp.Channel
	looked time.Time // when the last look began
	gone   bool      // what it found
}

// missing reports whether the queue is known not to exist. Callers that come
// while another one looks share the next look.
func (r *route) missing(conn *amqp.Connection) bool {
	asked := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looked.After(asked) {
		return r.gone
	}
	r.looked = time.Now()
	r.gone = r.look(conn)
	return r.gone
}

// look asks on a channel of its own, which a 404 closes. Whatever else goes wrong
// says nothing about the queue: a user of RabbitMQ 4.3 may lack the permission to
// see it.
func (r *route) look(conn *amqp.Connection) bool {
	if r.ch == nil || r.conn != conn || r.ch.IsClosed() {
		ch, err := conn.Channel()
		if err != nil {
			return false
		}
		r.conn, r.ch = conn, ch
	}
	_, err := r.ch.QueueDeclarePassive(r.queue, true, false, false, false, nil)
	var ex *amqp.Error
	return errors.As(err, &ex) && ex.Code == amqp.NotFound
}

// deadLetters reports whether a settlement makes the server dead-letter.
func (c *consumer) deadLetters(d *delivery, step settle.Step) bool {
	p := c.q.Policy
	reject, ok := step.(settle.Reject)
	if !ok || p.Type != settle.Quorum || p.DeadLetter == "" || p.MaxAttempts == 0 {
		return false
	}
	return !reject.Requeue || d.reading.Attempt >= p.MaxAttempts
}

// safeToDie returns when the server can be trusted to dead-letter a delivery. It
// reports false when the delivery has ended in another way.
func (c *consumer) safeToDie(v *vigil, o hooks.Outcome) bool {
	d := v.d
	if message.BlocksDeath(d.Headers, c.q.Policy.DeadLetter) {
		if err := c.recover(v, o, settle.DeathBlocked); err != nil {
			c.overdue(v, o, settle.DeadLetterMissing, err)
		}
		return false
	}
	for d.sub.err() == nil && c.route.missing(d.sub.session.conn) {
		if !v.again(c.q.Policy.DeadLetter, errNoDeadLetterQueue) {
			c.overdue(v, o, settle.DeadLetterMissing, errNoDeadLetterQueue)
			return false
		}
	}
	return true
}

var errNoDeadLetterQueue = errors.New("the dead-letter queue does not exist")
