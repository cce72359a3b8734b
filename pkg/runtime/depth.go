package runtime

import amqp "github.com/rabbitmq/amqp091-go"

// depthProbe counts messages on a channel of its own, which an error closes.
type depthProbe struct {
	session *session
	stop    <-chan struct{}
	ch      *amqp.Channel
}

func (l *depthProbe) ready(queue string) (int, error) {
	if l.ch == nil || l.ch.IsClosed() {
		ch, err := l.session.conn.Channel()
		if err != nil {
			return 0, err
		}
		l.ch = ch
	}
	ch := l.ch
	q, err := ask(l.session, l.stop, func() (amqp.Queue, error) {
		return ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	})
	if err != nil {
		l.ch = nil // it may wait for the answer for ever
	}
	return q.Messages, err
}
