package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// maxCopiesInFlight bounds how many copies wait for their confirm at a time.
const maxCopiesInFlight = 128

// Why a copy did not arrive. All but errTooLarge may pass with time.
var (
	errReturned  = errors.New("the broker has no such queue or no binding to it")
	errNacked    = errors.New("the broker refused it (nack): the queue is full or has failed")
	errNoConfirm = errors.New("no confirm in time")
	errUnknown   = errors.New("connection lost before the confirm")
	errNotReady  = errors.New("no connection to publish on")
	errRefused   = errors.New("refused by the broker")
	errTooLarge  = errors.New("too large")
)

// outgoing is one copy on its way.
type outgoing struct {
	queue         string // whose copy it is
	purpose       settle.Purpose
	exchange, key string
	mandatory     bool
	msg           amqp.Publishing
	bare          bool // nothing of ours is in it, and it is the last resort
}

// sender is what consumers and timers need of a publisher.
type sender interface {
	// publish returns nil once the copy has arrived for sure.
	publish(ctx context.Context, o *outgoing) error
	// fits returns errTooLarge for a copy that could not be sent on a connection
	// with this frame size; 0 is no limit.
	fits(o *outgoing, frame int) error
}

// publisher sends copies on a connection of its own and waits for confirms.
type publisher struct {
	purpose        string // of its connection
	dial           func(context.Context, string) (*amqp.Connection, error)
	log            *slog.Logger
	obs            Observer
	linkObs        Observer // is told when the connection is blocked
	confirmTimeout time.Duration
	slots          chan struct{} // one per copy in flight
	maxBody        atomic.Int64  // 0 until the broker has refused a body for its size

	mu      sync.Mutex
	link    *link         // nil while there is no connection
	changed chan struct{} // closed and replaced whenever link changes
}

func newPublisher(cfg Config) *publisher {
	return &publisher{
		purpose:        "publish",
		linkObs:        cfg.Observer,
		dial:           cfg.Dial,
		log:            cfg.Log,
		obs:            cfg.Observer,
		confirmTimeout: cfg.ConfirmTimeout,
		slots:          make(chan struct{}, maxCopiesInFlight),
		changed:        make(chan struct{}),
	}
}

// run keeps a connection open until ctx is done.
func (p *publisher) run(ctx context.Context) {
	wait := backoff.New(reconnectMin, reconnectMax)
	for ctx.Err() == nil {
		conn, err := p.dial(ctx, p.purpose)
		if err == nil {
			l := newLink(conn, p.log, p.linkObs)
			p.set(l)
			tell(p.obs, Connected{Purpose: p.purpose})
			err = l.wait(ctx)
			p.set(nil)
			l.close()
			wait.Reset()
		}
		if ctx.Err() != nil {
			err = nil // it is we who end it
		}
		tell(p.obs, Disconnected{Purpose: p.purpose, Err: err})
		if ctx.Err() == nil {
			d := wait.Next()
			p.log.Warn("no connection to publish on; trying again", keyPurpose, p.purpose, keyError, err, keyIn, d)
			sleep(d, ctx.Done())
		}
	}
}

func (p *publisher) set(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
	close(p.changed)
	p.changed = make(chan struct{})
}

// current returns the link, waiting for one as long as a confirm may take. One
// whose connection has just ended is none.
func (p *publisher) current(ctx context.Context) (*link, error) {
	limit := time.NewTimer(p.confirmTimeout)
	defer limit.Stop()
	for {
		p.mu.Lock()
		l, changed := p.link, p.changed
		p.mu.Unlock()
		if l != nil && !l.conn.IsClosed() {
			return l, nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return nil, errNotReady
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// publish sends one copy and returns nil once the broker has confirmed it and
// has not returned it. Ending ctx gives up waiting; the copy may then have
// arrived or not.
func (p *publisher) publish(ctx context.Context, o *outgoing) error {
	tell(p.obs, CopyStarted{o.queue, o.purpose})
	err := p.deliver(ctx, o)
	if p.obs != nil {
		p.obs.Observe(CopyEnded{o.queue, o.purpose, resultOf(ctx, err)})
	}
	return err
}

func (p *publisher) deliver(ctx context.Context, o *outgoing) error {
	if err := p.fits(o, 0); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l, err := p.current(ctx)
	if err != nil {
		return err
	}
	if err := p.fits(o, l.conn.Config.FrameSize); err != nil {
		return err
	}
	if err := l.unblocked(ctx); err != nil {
		return err
	}
	return p.learn(p.over(ctx, l, o))
}

// over sends a copy over a lane that it shares with others. A copy that the
// broker refuses closes the lane for all of them, so each is then tried once
// more on a lane of its own: what is refused there is refused for what it is. So
// is one that a queue refuses: RabbitMQ remembers for a channel that a quorum
// queue was full, until a message leaves it, even when its limit has been lifted
// (measured on 3.10: an empty queue refused an old channel for ever).
func (p *publisher) over(ctx context.Context, l *link, o *outgoing) error {
	ln, s, err := l.share(o)
	if err != nil {
		return err
	}
	if err = p.send(ctx, l, ln, s); !errors.Is(err, errRefused) && !errors.Is(err, errNacked) {
		return err
	}
	if ln, s, err = l.alone(o); err != nil {
		return err
	}
	return p.send(ctx, l, ln, s)
}

func (p *publisher) fits(o *outgoing, frame int) error {
	if limit := p.maxBody.Load(); limit > 0 && int64(len(o.msg.Body)) > limit {
		return fmt.Errorf("%w: the body has %d bytes, the broker takes %d", errTooLarge, len(o.msg.Body), limit)
	}
	if frame <= 0 {
		return nil
	}
	if !o.bare {
		if message.Crowded(&o.msg) {
			return fmt.Errorf("%w: its %d headers leave no room for those of the broker", errTooLarge, len(o.msg.Headers))
		}
		frame -= min(message.Spare, frame/2)
	}
	if size := message.HeaderFrameSize(&o.msg); size > frame {
		return fmt.Errorf("%w: properties and headers take %d bytes; %d fit into a frame beside what the broker may add", errTooLarge, size, frame)
	}
	return nil
}

// send publishes on a lane and waits for the answer.
func (p *publisher) send(ctx context.Context, l *link, ln *lane, s *sent) error {
	o, answered := s.out, false
	defer func() { l.leave(ln, s, answered) }()
	confirm, err := ln.ch.PublishWithDeferredConfirm(o.exchange, o.key, o.mandatory, false, o.msg)
	if err != nil {
		return ln.ended(err)
	}
	limit := time.NewTimer(p.confirmTimeout)
	defer limit.Stop()
	for {
		select {
		case <-confirm.Done():
			answered = true
			return ln.answer(s, confirm.Acked())
		case <-limit.C:
			if l.isBlocked() { // a blocked broker is slow, not silent
				limit.Reset(p.confirmTimeout)
				continue
			}
			return errNoConfirm
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// RabbitMQ's words for a body over max_message_size, 406, on 3.10 to 4.3.
var tooLargeText = regexp.MustCompile(`message size \d+ is larger than configured max size (\d+)`)

// learn recognises a body over the server's limit, which no AMQP method tells
// beforehand, so that the next one is measured before it is sent.
func (p *publisher) learn(err error) error {
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
	return fmt.Errorf("%w: %s", errTooLarge, reasonText(ex))
}
