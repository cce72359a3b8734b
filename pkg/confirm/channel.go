package runtime

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// laneWidth is how many copies share a channel: enough for the broker to confirm
// many at a time, and few enough that one refused copy troubles few others.
const laneWidth = 64

// lane is a channel in confirm mode.
type lane struct {
	ch      *amqp.Channel
	returns chan amqp.Return
	closed  chan *amqp.Error
	over    chan struct{} // closed once why is known
	why     *amqp.Error

	mu       sync.Mutex
	inFlight map[*sent]struct{}
	retired  bool // takes no more copies, and closes with the last one
}

// sent is one copy that waits for its answer. Returned is guarded by its lane.
type sent struct {
	out      *outgoing
	returned *amqp.Return
}

func (l *link) open() (*lane, error) {
	ch, err := l.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	ln := &lane{
		ch:       ch,
		returns:  ch.NotifyReturn(make(chan amqp.Return, laneWidth)), // never full: one for each copy in flight
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		over:     make(chan struct{}),
		inFlight: map[*sent]struct{}{},
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	return ln, l.watch(ln)
}

// watch notes why the lane ends.
func (l *link) watch(ln *lane) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errUnknown
	}
	l.chores.Go(func() {
		ln.why = <-ln.closed
		close(ln.over)
	})
	return nil
}

// share puts a copy on a lane with room for it, opening one when needed.
func (l *link) share(o *outgoing) (*lane, *sent, error) {
	if ln, s := l.find(o); s != nil {
		return ln, s, nil
	}
	l.opening.Lock() // of many that find no room, one opens a lane for all
	defer l.opening.Unlock()
	if ln, s := l.find(o); s != nil {
		return ln, s, nil
	}
	ln, err := l.open()
	if err != nil {
		return nil, nil, err
	}
	s := ln.enter(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes = append(l.lanes, ln)
	return ln, s, nil
}

// find puts a copy on a lane that is open; nil when there is no room.
func (l *link) find(o *outgoing) (*lane, *sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes = slices.DeleteFunc(l.lanes, func(ln *lane) bool { return ln.ch.IsClosed() })
	for _, ln := range l.lanes {
		if s := ln.enter(o); s != nil {
			return ln, s
		}
	}
	return nil, nil
}

// alone puts a copy on a lane of its own.
func (l *link) alone(o *outgoing) (*lane, *sent, error) {
	ln, err := l.open()
	if err != nil {
		return nil, nil, err
	}
	s := ln.enter(o)
	ln.retired = true
	return ln, s, nil
}

// enter notes a copy that is about to be sent; nil when the lane takes no more.
func (ln *lane) enter(o *outgoing) *sent {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.retired || len(ln.inFlight) >= laneWidth {
		return nil
	}
	s := &sent{out: o}
	ln.inFlight[s] = struct{}{}
	return s
}

// leave ends a copy's stay on the lane. One that leaves without an answer retires
// the lane, since nobody would read a return that comes for it later.
func (l *link) leave(ln *lane, s *sent, answered bool) {
	ln.mu.Lock()
	delete(ln.inFlight, s)
	ln.retired = ln.retired || !answered
	done := ln.retired && len(ln.inFlight) == 0
	ln.mu.Unlock()
	if !done {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && !ln.ch.IsClosed() {
		l.chores.Go(func() { _ = ln.ch.Close() }) // may wait for the broker; ends with the connection
	}
}

// answer is what became of a copy whose confirm has come.
func (ln *lane) answer(s *sent, acked bool) error {
	if !acked {
		ln.retire()
		return ln.refusal()
	}
	if ret := ln.returnOf(s); ret != nil {
		return fmt.Errorf("%w: %d %s", errReturned, ret.ReplyCode, ret.ReplyText)
	}
	return nil
}

// retire sees to it that the lane takes no more copies.
func (ln *lane) retire() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.retired = true
}

// returnOf returns the basic.return of a confirmed copy. A return comes before
// its confirm, so it is in the buffer by now, or another copy has taken it out
// and marked ours. A return says where a copy was sent, not which one it was:
// all that are on their way to that place are taken as returned. They share its
// fate but for a moment in which the place comes or goes, and then the doubt
// makes a duplicate, not a loss.
func (ln *lane) returnOf(s *sent) *amqp.Return {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for {
		select {
		case ret, ok := <-ln.returns:
			if !ok {
				return s.returned
			}
			for other := range ln.inFlight {
				if other.out.exchange == ret.Exchange && other.out.key == ret.RoutingKey {
					other.returned = &ret
				}
			}
		default:
			return s.returned
		}
	}
}

// refusal tells a nack from a channel that ended: the library reports both as
// "not acked".
func (ln *lane) refusal() error {
	if !ln.ch.IsClosed() {
		return errNacked
	}
	return ln.ended(nil)
}

// ended is why a lane can carry no copy any more.
func (ln *lane) ended(err error) error {
	if !ln.ch.IsClosed() {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	select {
	case <-ln.over:
	case <-time.After(whyWithin): // the library has marked the channel closed and is about to say why
		return errors.Join(errUnknown, err)
	}
	if why := ln.why; why != nil && why.Server && !isConnectionError(why) {
		return fmt.Errorf("%w: %w", errRefused, why)
	}
	return closeCause(errUnknown, ln.why)
}

// isConnectionError reports whether the broker closed the whole connection with
// e: then it says nothing about this copy.
func isConnectionError(e *amqp.Error) bool {
	switch e.Code {
	case amqp.ConnectionForced, amqp.InvalidPath, amqp.FrameError, amqp.SyntaxError, amqp.CommandInvalid,
		amqp.ChannelError, amqp.UnexpectedFrame, amqp.ResourceError, amqp.NotAllowed, amqp.NotImplemented, amqp.InternalError:
		return true
	}
	return false
}
