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
func (c *consumer) safeToDie(st stages, d *delivery, o hooks.Outcome) bool {
	if message.BlocksDeath(d.Headers, c.q.Policy.DeadLetter) {
		c.bury(st, d, o)
		return false
	}
	for d.sub.err() == nil && c.route.missing(d.sub.session.conn) {
		if !c.linger(st, d, errNoDeadLetterQueue) {
			c.keep(st, d, o)
			return false
		}
	}
	return true
}

var errNoDeadLetterQueue = errors.New("the dead-letter queue does not exist")

// linger keeps a delivery unsettled for a while; it reports false when the
// process stops or the delivery is lost.
func (c *consumer) linger(st stages, d *delivery, err error) bool {
	pause := c.pace.next()
	c.log.Error("not dead-lettered; the message is kept until it can be", keyTarget, c.q.Policy.DeadLetter,
		keyMessage, d.MessageId, keyAttempt, d.reading.Attempt, keyError, err, keyIn, pause.Round(time.Millisecond))
	return sleep(pause, st.intake.Done(), d.sub.ctx.Done())
}

// bury puts a copy without the death history into the dead-letter queue and acks
// the original: with its history the server would drop it.
func (c *consumer) bury(st stages, d *delivery, o hooks.Outcome) {
	dead := c.q.Policy.DeadLetter
	grave := settle.Copy{To: settle.Target{Key: dead, Queue: dead}, Purpose: settle.ForDeadLetter}
	for {
		err := c.send(st, d, o, grave)
		if err == nil {
			c.finish(d, settle.Ack{}, o)
			return
		}
		if d.sub.err() != nil || !c.linger(st, d, err) {
			c.keep(st, d, o)
			return
		}
	}
}

// keep ends a delivery that has nowhere to go when the process stops: to return
// it would spend its last attempt before RabbitMQ 4.3, so a copy with the same
// count takes its place in the queue.
func (c *consumer) keep(st stages, d *delivery, o hooks.Outcome) {
	again := settle.Copy{
		To:      settle.Target{Key: c.queue, Queue: c.queue},
		Purpose: settle.ForRetry,
		Count:   d.reading.Attempt - 1,
	}
	if err := c.send(st, d, o, again); err == nil {
		c.finish(d, settle.Ack{}, o)
		return
	}
	c.handBack(d)
}
