package confirm

import (
	"context"
	"errors"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
)

// channelWidth is how many messages share a channel: enough for the broker to
// confirm many at a time, and few enough that one that is refused troubles few
// others.
const channelWidth = 64

var errConnLost = errors.New("connection lost")

// publishConn is a connection with the confirm channels opened on it.
type publishConn struct {
	conn    *amqp.Connection
	events  Events
	closed  chan *amqp.Error
	blocked chan amqp.Blocking
	running sync.WaitGroup
	opening sync.Mutex // held while a shared channel is opened

	mu        sync.Mutex
	shared    []*Channel
	ended     bool          // nothing of running may start any more
	unblocked chan struct{} // non-nil while the broker blocks publishing; closed when it ends
}

func newPublishConn(conn *amqp.Connection, events Events) *publishConn {
	c := &publishConn{
		conn:    conn,
		events:  events,
		closed:  conn.NotifyClose(make(chan *amqp.Error, 1)),
		blocked: conn.NotifyBlocked(make(chan amqp.Blocking, 8)),
	}
	c.running.Go(c.watchBlocked)
	return c
}

// wait returns when the connection is lost or ctx is done.
func (c *publishConn) wait(ctx context.Context) error {
	select {
	case why := <-c.closed:
		return closing.Cause(errConnLost, why)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection and everything that waits on it.
func (c *publishConn) close() {
	closing.Conn(c.conn)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.running.Wait()
}

// acquire finds room for a message on a channel that it shares with others, opening
// one when needed.
func (c *publishConn) acquire(m *Message) (*Pending, error) {
	if p := c.find(m); p != nil {
		return p, nil
	}
	c.opening.Lock() // of many that find no room, one opens a channel for all
	defer c.opening.Unlock()
	if p := c.find(m); p != nil {
		return p, nil
	}
	ch, err := Open(c.conn, channelWidth)
	if err != nil {
		return nil, err
	}
	p := ch.acquire(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared = append(c.shared, ch)
	return p, nil
}

// find returns nil when no open channel has room.
func (c *publishConn) find(m *Message) *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared = slices.DeleteFunc(c.shared, func(ch *Channel) bool { return ch.ch.IsClosed() })
	for _, ch := range c.shared {
		if p := ch.acquire(m); p != nil {
			return p
		}
	}
	return nil
}

// acquireAlone gives a message a channel of its own.
func (c *publishConn) acquireAlone(m *Message) (*Pending, error) {
	ch, err := Open(c.conn, 1)
	if err != nil {
		return nil, err
	}
	p := ch.acquire(m)
	ch.retire()
	return p, nil
}

// release ends a message's stay on its channel, and closes a channel that is
// retired after the last one.
func (c *publishConn) release(p *Pending, answered bool) {
	if !p.ch.release(p, answered) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := p.ch.ch; !c.ended && !ch.IsClosed() {
		c.running.Go(func() { _ = ch.Close() }) // may wait for the broker; ends with the connection
	}
}

// watchBlocked follows connection.blocked until the connection ends. The
// channel must always be read, or the client library stalls.
func (c *publishConn) watchBlocked() {
	for b := range c.blocked {
		if b.Active {
			c.events.blocked(b.Reason)
		} else {
			c.events.unblocked()
		}
		c.setBlocked(b.Active)
	}
	if c.isBlocked() {
		c.events.unblocked() // a connection that is gone is not blocked
	}
	c.setBlocked(false)
}

func (c *publishConn) setBlocked(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case on && c.unblocked == nil:
		c.unblocked = make(chan struct{})
	case !on && c.unblocked != nil:
		close(c.unblocked)
		c.unblocked = nil
	}
}

func (c *publishConn) isBlocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unblocked != nil
}

// waitUnblocked waits as long as the broker blocks publishing. Nothing is sent
// meanwhile, so waiting loses nothing.
func (c *publishConn) waitUnblocked(ctx context.Context) error {
	c.mu.Lock()
	unblocked := c.unblocked
	c.mu.Unlock()
	if unblocked == nil {
		return nil
	}
	select {
	case <-unblocked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
