package runtime

import (
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
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

// awaitRoute keeps a delivery that the server is about to dead-letter until its
// dead-letter queue exists. It reports false when the delivery has ended in
// another way.
func (c *consumer) awaitRoute(st stages, d *delivery, o hooks.Outcome) bool {
	for d.sub.err() == nil {
		if !c.route.missing(d.sub.conn) {
			return true
		}
		pause := c.pace.next()
		c.log.Error("the dead-letter queue does not exist; the message is kept until it does", keyTarget, c.q.Policy.DeadLetter,
			keyMessage, d.MessageId, keyAttempt, d.reading.Attempt, keyIn, pause.Round(time.Millisecond))
		if !sleep(pause, st.intake.Done(), d.sub.ctx.Done()) {
			c.keep(d, o)
			return false
		}
	}
	return true
}

// keep ends a delivery that has nowhere to go when the process stops: to return
// it would spend its last attempt before RabbitMQ 4.3, so a copy with the same
// count takes its place in the queue.
func (c *consumer) keep(d *delivery, o hooks.Outcome) {
	again := settle.Copy{
		To:      settle.Target{Key: c.queue, Queue: c.queue},
		Purpose: settle.ForRetry,
		Count:   d.reading.Attempt - 1,
	}
	if err := c.send(d, o, again); err == nil {
		c.finish(d, settle.Ack{}, o)
		return
	}
	c.handBack(d)
}
