package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	errChannelClosed   = errors.New("channel closed")
	errServerCancelled = errors.New("consumer cancelled by server: the queue was deleted, its leader moved or an acknowledgement took too long")
)

// subscription is one consumer on one channel. Its deliveries can be settled
// only while its context lives.
type subscription struct {
	conn      *amqp.Connection
	ch        *amqp.Channel
	tag       string
	started   time.Time
	frame     int             // largest frame the broker takes, as negotiated; 0: any
	ctx       context.Context // done when the channel has ended
	cancel    context.CancelCauseFunc
	closed    chan *amqp.Error
	cancelled chan string
	unsettled sync.WaitGroup // deliveries in hand
	stop      sync.Once      // of cancelling the consumer

	once  sync.Once
	why   error         // the server ended the consumer; the channel may live on
	known chan struct{} // closed once why is set
}

func newSubscription(parent context.Context, ch *amqp.Channel, tag string) *subscription {
	ctx, cancel := context.WithCancelCause(parent)
	return &subscription{
		ch:        ch,
		tag:       tag,
		started:   time.Now(),
		ctx:       ctx,
		cancel:    cancel,
		closed:    ch.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: ch.NotifyCancel(make(chan string, 1)),
		known:     make(chan struct{}),
	}
}

// watch follows what the server says about the consumer until the channel ends.
func (s *subscription) watch(session context.Context) {
	cancelled := s.cancelled
	for {
		select {
		case _, ok := <-cancelled:
			if ok {
				s.setReason(errServerCancelled)
			}
			cancelled = nil
		case err := <-s.closed:
			s.end(closeCause(errChannelClosed, err))
			return
		case <-session.Done():
			s.end(context.Cause(session))
			return
		}
	}
}

// end marks every delivery of the subscription as lost.
func (s *subscription) end(err error) {
	s.setReason(err)
	s.cancel(err)
	if !s.ch.IsClosed() {
		_ = s.ch.Close() // its unsettled deliveries are redelivered either way
	}
}

// retire closes the channel once the deliveries that came on it are settled;
// until then they can be, even when the server has ended the consumer.
func (s *subscription) retire() {
	s.unsettled.Wait()
	s.end(errChannelClosed)
}

func (s *subscription) setReason(err error) {
	s.once.Do(func() {
		s.why = err
		close(s.known)
	})
}

// rest notes that the queue is paused for so long that nothing may be kept.
func (s *subscription) rest(err error) {
	if errors.Is(err, errPaused) {
		s.setReason(err)
	}
}

// resting reports whether rest has noted that.
func (s *subscription) resting() bool {
	select {
	case <-s.known:
		return errors.Is(s.why, errPaused)
	default:
		return false
	}
}

// whyWithin is how long after the end of a channel the client library may take to
// say why: a moment, but on a busy machine.
const whyWithin = 5 * time.Second

// reason is why the consumer ended. The deliveries end a moment before the
// client library says why.
func (s *subscription) reason() error {
	select {
	case <-s.known:
		return s.why
	case <-time.After(whyWithin):
		return errChannelClosed
	}
}

// err says why the subscription's deliveries can no longer be settled; nil
// while they can.
func (s *subscription) err() error { return context.Cause(s.ctx) }
