package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

var (
	errChannelClosed   = errors.New("channel closed")
	errServerCancelled = errors.New("consumer cancelled by server: the queue was deleted, its leader moved or an acknowledgement took too long")
)

// subscription is one consumer on one channel. Its deliveries can be settled
// only while its context lives.
type subscription struct {
	session   *session
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
	going     sync.Once      // of saying what goes with it
	silent    bool           // the broker did not answer that
	parked    atomic.Int64   // deliveries that have nowhere to go
	polling   *polling       // how messages come where there is no consumer yet; else nil

	revoked atomic.Bool // the broker has cancelled the consumer

	once  sync.Once
	why   error         // the server ended the consumer; the channel may live on
	known chan struct{} // closed once why is set
}

func newSubscription(s *session, ch *amqp.Channel, tag string) *subscription {
	ctx, cancel := context.WithCancelCause(s.ctx)
	return &subscription{
		session:   s,
		frame:     s.conn.Config.FrameSize,
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
func (s *subscription) watch() {
	cancelled := s.cancelled
	for {
		select {
		case _, ok := <-cancelled:
			if ok {
				s.revoked.Store(true)
				s.setReason(errServerCancelled)
			}
			cancelled = nil
		case err := <-s.closed:
			s.end(closing.Cause(errChannelClosed, err))
			return
		case <-s.ctx.Done(): // the session is lost, or the channel given up
			s.end(context.Cause(s.ctx))
			return
		}
	}
}

// end marks every delivery of the subscription as lost.
func (s *subscription) end(err error) {
	s.setReason(err)
	s.cancel(err)
	if !s.ch.IsClosed() {
		s.session.background(func() { _ = s.ch.Close() }) // its unsettled deliveries are redelivered either way
	}
}

func (s *subscription) setReason(err error) {
	s.once.Do(func() {
		s.why = err
		close(s.known)
	})
}

// taken reports whether the broker may have given the subscription's deliveries to
// others. After a consumer timeout RabbitMQ 4.3 requeues what is too old, one
// delivery after the other, and leaves the channel open: an acknowledgement of
// such a delivery does nothing, and nobody says so.
func (s *subscription) taken() bool { return s.revoked.Load() || s.err() != nil }

// rest notes that the queue is paused for so long that nothing may be kept.
func (s *subscription) rest(err error) {
	if errors.Is(err, breaker.ErrPaused) {
		s.setReason(err)
	}
}

// resting reports whether rest has noted that.
func (s *subscription) resting() bool {
	select {
	case <-s.known:
		return errors.Is(s.why, breaker.ErrPaused)
	default:
		return false
	}
}

// reason is why the consumer ended. The deliveries end a moment before the
// client library says why.
func (s *subscription) reason() error {
	select {
	case <-s.known:
		return s.why
	case <-time.After(closing.ReasonWithin):
		return errChannelClosed
	}
}

// err says why the subscription's deliveries can no longer be settled; nil
// while they can.
func (s *subscription) err() error { return context.Cause(s.ctx) }

// brought reports whether d came by s.
func (s *subscription) brought(d *delivery) bool { return d.sub == s }
