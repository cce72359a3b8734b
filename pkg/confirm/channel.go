package confirm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
)

// Channel is a channel in confirm mode that several messages share at a time. It is
// safe for concurrent use. What ends it is the end of its connection, or an error
// of the broker.
type Channel struct {
	ch      *amqp.Channel
	width   int
	returns chan amqp.Return
	reason  reason

	mu       sync.Mutex
	inFlight map[*Pending]struct{}
	retired  bool // takes no more messages, and closes with the last one
}

// Pending is a message on its way: it waits for the broker's answer. Each is ended
// by one call of [Pending.Wait].
type Pending struct {
	ch       *Channel
	message  *Message
	confirm  *amqp.DeferredConfirmation
	returned *amqp.Return // guarded by ch.mu
}

// Open opens a confirm channel on conn that at most width messages share at a time.
func Open(conn *amqp.Connection, width int) (*Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	c := &Channel{
		ch:       ch,
		width:    width,
		returns:  ch.NotifyReturn(make(chan amqp.Return, width)), // never full: one for each message in flight
		reason:   reason{closed: ch.NotifyClose(make(chan *amqp.Error, 1))},
		inFlight: map[*Pending]struct{}{},
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return c, nil
}

var errNoRoom = errors.New("the channel takes no more messages")

// Send publishes m without waiting for the answer. Messages that one goroutine
// sends arrive in their order. It fails when as many messages as the channel was
// opened for are on their way.
func (c *Channel) Send(m *Message) (*Pending, error) {
	p := c.acquire(m)
	if p == nil {
		return nil, errNoRoom
	}
	if err := p.send(); err != nil {
		c.release(p, false)
		return nil, err
	}
	return p, nil
}

// Wait returns nil once the message has arrived, else one of the errors of this
// package, or the cause of ctx when that ends first.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.confirm.Done():
		defer p.ch.release(p, true)
		return p.result()
	case <-ctx.Done():
		p.ch.release(p, false)
		return context.Cause(ctx)
	}
}

// acquire notes a message that is about to be sent; nil when the channel takes no
// more.
func (c *Channel) acquire(m *Message) *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || len(c.inFlight) >= c.width {
		return nil
	}
	p := &Pending{ch: c, message: m}
	c.inFlight[p] = struct{}{}
	return p
}

// release ends a message's stay on the channel, and reports whether that was the
// last one of a retired channel. A message that leaves without an answer retires
// the channel, since a return that comes for it later would be taken for another's.
func (c *Channel) release(p *Pending, answered bool) (done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, p)
	c.retired = c.retired || !answered
	return c.retired && len(c.inFlight) == 0
}

// retire sees to it that the channel takes no more messages.
func (c *Channel) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
}

func (p *Pending) send() (err error) {
	m := p.message
	if p.confirm, err = p.ch.ch.PublishWithDeferredConfirm(m.Exchange, m.Key, m.Mandatory, false, m.Publishing); err != nil {
		return p.ch.endedWith(err)
	}
	return nil
}

// result is what became of a message whose confirm has come.
func (p *Pending) result() error {
	if !p.confirm.Acked() {
		p.ch.retire()
		return p.ch.refusal()
	}
	if ret := p.ch.returnOf(p); ret != nil {
		return fmt.Errorf("%w: %d %s", ErrReturned, ret.ReplyCode, ret.ReplyText)
	}
	return nil
}

// returnOf returns the basic.return of a confirmed message. A return comes before
// its confirm, so it is in the buffer by now, or another message has taken it out
// and marked ours. A return says where a message was sent, not which one it was:
// all that are on their way to that place are taken as returned. They share its
// fate but for a moment in which the place comes or goes, and then the doubt
// makes a duplicate, not a loss.
func (c *Channel) returnOf(p *Pending) *amqp.Return {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		select {
		case ret, ok := <-c.returns:
			if !ok {
				return p.returned
			}
			for other := range c.inFlight {
				if other.message.Exchange == ret.Exchange && other.message.Key == ret.RoutingKey {
					other.returned = &ret
				}
			}
		default:
			return p.returned
		}
	}
}

// refusal tells a nack from a channel that ended: the library reports both as
// "not acked".
func (c *Channel) refusal() error {
	if !c.ch.IsClosed() {
		return ErrNacked
	}
	return c.endedWith(nil)
}

// endedWith is why the channel carries no message any more; err is what the
// library says of it.
func (c *Channel) endedWith(err error) error {
	if !c.ch.IsClosed() {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	why, known := c.reason.wait()
	switch {
	case !known:
		return errors.Join(ErrUnknown, err)
	case why != nil && why.Server && !closing.EndsConnection(why):
		return fmt.Errorf("%w: %w", ErrRefused, why)
	}
	return closing.Cause(ErrUnknown, why)
}

// reason is why a channel has ended.
type reason struct {
	closed chan *amqp.Error

	mu    sync.Mutex
	known bool
	why   *amqp.Error // nil when nobody has said so
}

// wait returns it. The library has marked the channel as closed and is about to
// say why.
func (r *reason) wait() (why *amqp.Error, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known {
		return r.why, true
	}
	select {
	case r.why = <-r.closed:
		r.known = true
	case <-time.After(closing.ReasonWithin):
	}
	return r.why, r.known
}
