package runtime

import (
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deadLetterQueue looks whether the dead-letter queue of a quorum queue is there. The
// server moves a spent message there by itself, at most once: without the queue
// it drops the message and tells nobody, so it must not be asked to.
type deadLetterQueue struct {
	name string

	mu     sync.Mutex
	conn   *amqp.Connection
	ch     *amqp.Channel
	looked time.Time // when the last look began
	gone   bool      // what it found
}

// missing reports whether the queue is known not to exist. Callers that come
// while another one looks share the next look.
func (q *deadLetterQueue) missing(conn *amqp.Connection) bool {
	asked := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.looked.After(asked) {
		return q.gone
	}
	q.looked = time.Now()
	q.gone = q.look(conn)
	return q.gone
}

// look asks on a channel of its own, which a 404 closes. Whatever else goes wrong
// says nothing about the queue: a user of RabbitMQ 4.3 may lack the permission to
// see it.
func (q *deadLetterQueue) look(conn *amqp.Connection) bool {
	if q.ch == nil || q.conn != conn || q.ch.IsClosed() {
		ch, err := conn.Channel()
		if err != nil {
			return false
		}
		q.conn, q.ch = conn, ch
	}
	_, err := q.ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
	var ex *amqp.Error
	return errors.As(err, &ex) && ex.Code == amqp.NotFound
}
