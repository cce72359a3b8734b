package confirm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

// maxInFlight bounds how many messages of a publisher wait for their confirm at a
// time.
const maxInFlight = 128

// The pauses between tries to connect.
const (
	reconnectMin = 500 * time.Millisecond
	reconnectMax = 30 * time.Second
)

// Config is what a [Publisher] needs.
type Config struct {
	// Dial opens a connection that the publisher then owns.
	Dial func(context.Context) (*amqp.Connection, error)
	// Timeout is how long a message waits for a connection, and then for its confirm.
	// While the broker blocks publishing no time passes.
	Timeout time.Duration
	Events  Events
}

// Publisher publishes on a connection of its own, so that a broker that takes no
// publishings, or closes the connection over one, stops nothing else. It is safe
// for concurrent use.
type Publisher struct {
	cfg     Config
	slots   chan struct{} // one per message in flight
	maxBody atomic.Int64  // 0 until the broker has refused a body for its size

	mu      sync.Mutex
	conn    *publishConn  // nil while there is none
	changed chan struct{} // closed and replaced whenever conn changes
}

// New returns a publisher that has no connection until [Publisher.Run] is called.
func New(cfg Config) *Publisher {
	return &Publisher{cfg: cfg, slots: make(chan struct{}, maxInFlight), changed: make(chan struct{})}
}

// Run keeps a connection open until ctx is done.
func (p *Publisher) Run(ctx context.Context) {
	wait := backoff.New(reconnectMin, reconnectMax)
	for ctx.Err() == nil {
		conn, err := p.cfg.Dial(ctx)
		if err == nil {
			err = p.use(ctx, conn)
			wait.Reset()
		}
		if ctx.Err() != nil {
			p.cfg.Events.disconnected(nil, 0) // it is we who end it
			return
		}
		d := wait.Next()
		p.cfg.Events.disconnected(err, d)
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

// use publishes over conn until it is lost.
func (p *Publisher) use(ctx context.Context, conn *amqp.Connection) error {
	c := newPublishConn(conn, p.cfg.Events)
	p.set(c)
	p.cfg.Events.connected()
	err := c.wait(ctx)
	p.set(nil)
	c.close()
	return err
}

func (p *Publisher) set(c *publishConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = c
	close(p.changed)
	p.changed = make(chan struct{})
}

// current returns the connection, waiting for one as long as a confirm may take.
// One that has just ended is none.
func (p *Publisher) current(ctx context.Context) (*publishConn, error) {
	limit := time.NewTimer(p.cfg.Timeout)
	defer limit.Stop()
	for {
		p.mu.Lock()
		c, changed := p.conn, p.changed
		p.mu.Unlock()
		if c != nil && !c.conn.IsClosed() {
			return c, nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return nil, ErrNotReady
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Publish sends m and returns nil once it has arrived, else one of the errors of
// this package. Ending ctx gives up waiting, with its cause; m may then have
// arrived or not.
func (p *Publisher) Publish(ctx context.Context, m *Message) error {
	if err := p.Fits(m, 0); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c, err := p.current(ctx)
	if err != nil {
		return err
	}
	if err := p.Fits(m, c.conn.Config.FrameSize); err != nil {
		return err
	}
	if err := c.waitUnblocked(ctx); err != nil {
		return err
	}
	return p.learn(p.sendShared(ctx, c, m))
}

// Fits returns ErrTooLarge for a message that could not be sent on a connection
// with this frame size, in bytes; 0 is no limit.
func (p *Publisher) Fits(m *Message, frame int) error {
	if limit := p.maxBody.Load(); limit > 0 && int64(len(m.Body)) > limit {
		return fmt.Errorf("%w: the body has %d bytes, the broker takes %d", ErrTooLarge, len(m.Body), limit)
	}
	return m.fitsFrame(frame)
}

// sendShared sends a message over a channel that it shares with others. One that
// the broker refuses closes the channel for all of them, so each is then tried once
// more on a channel of its own: what is refused there is refused for what it is. So
// is one that a queue refuses: RabbitMQ remembers for a channel that a quorum
// queue was full, until a message leaves it, even when its limit has been lifted
// (measured on 3.10: an empty queue refused an old channel for ever).
func (p *Publisher) sendShared(ctx context.Context, c *publishConn, m *Message) error {
	pending, err := c.acquire(m)
	if err != nil {
		return err
	}
	if err = p.send(ctx, c, pending); !errors.Is(err, ErrRefused) && !errors.Is(err, ErrNacked) {
		return err
	}
	if pending, err = c.acquireAlone(m); err != nil {
		return err
	}
	return p.send(ctx, c, pending)
}

// send publishes a message that has room on a channel, and waits for the answer.
func (p *Publisher) send(ctx context.Context, c *publishConn, pending *Pending) error {
	answered := false
	defer func() { c.release(pending, answered) }()
	if err := pending.send(); err != nil {
		return err
	}
	limit := time.NewTimer(p.cfg.Timeout)
	defer limit.Stop()
	for {
		select {
		case <-pending.confirm.Done():
			answered = true
			return pending.result()
		case <-limit.C:
			if c.isBlocked() { // a blocked broker is slow, not silent
				limit.Reset(p.cfg.Timeout)
				continue
			}
			return ErrNoConfirm
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// RabbitMQ's words for a body over max_message_size, 406, on 3.10 to 4.3.
var tooLargeText = regexp.MustCompile(`message size \d+ is larger than configured max size (\d+)`)

// learn recognises a body over the server's limit, which no AMQP method tells
// beforehand, so that the next one is measured before it is sent.
func (p *Publisher) learn(err error) error {
	var ex *amqp.Error
	if !errors.As(err, &ex) || ex.Code != amqp.PreconditionFailed {
		return err
	}
	m := tooLargeText.FindStringSubmatch(ex.Reason)
	if m == nil {
		return err
	}
	if limit, convErr := strconv.ParseInt(m[1], 10, 64); convErr == nil {
		p.maxBody.Store(limit)
	}
	return fmt.Errorf("%w: %s", ErrTooLarge, closing.Text(ex))
}
