package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// The defaults of a Config.
const (
	DefaultShutdownTimeout = 25 * time.Second
	DefaultConfirmTimeout  = 30 * time.Second
)

// Config is what Run needs: Dial, Log and at least one queue, whose names are unique.
// What may be left out says so. Package service makes one of a spec.
type Config struct {
	// Dial opens one connection; purpose is "consume", "publish", "reply" or "prepare". A
	// queue that does not answer gets connections of its own to consume it.
	Dial func(ctx context.Context, purpose string) (*amqp.Connection, error)
	// Prepare declares or verifies what the queues need, after every dial of the
	// consume connection and before the first consumer. nil does nothing.
	//
	// Before anything has been consumed, it may take a minute, and a tenth of a second
	// for each queue; when it fails, Run dials and prepares again, unless the error is
	// [Permanent] (see also HeldUp). After a reconnect it may take 5 s. When it fails
	// then, the queues are consumed all the same, and it runs again beside them, on
	// connections of its own, until it succeeds.
	//
	// It has to return when its context ends, and may close the connection then: a
	// question to a broker that does not answer ends in no other way.
	Prepare func(ctx context.Context, conn *amqp.Connection) error
	// HeldUp reports whether an error of Prepare concerns queues that can only not
	// be had now, because another connection holds them exclusively: the others are
	// consumed from the start. nil: no error does.
	HeldUp func(error) bool

	Queues          []Queue
	ShutdownTimeout time.Duration // 0: DefaultShutdownTimeout
	ConfirmTimeout  time.Duration // 0: DefaultConfirmTimeout
	// Drain ends Run, with nil, once every queue is empty and nothing is held.
	// Retries that wait on the broker are not waited for, but counted in the log.
	Drain bool
	// DrainTimeout ends a Drain that takes longer with ErrNotDrained; 0: it may take
	// for ever.
	DrainTimeout time.Duration
	// Log gets every event that an operator has to know of; docs/operations.md lists
	// its keys. slog.New(slog.DiscardHandler) is silent.
	Log *slog.Logger
	// Bodies bounds and counts the message bodies in hand; nil: the default bound.
	Bodies *memory.Bodies
	// Observer is told what happens; nil costs nothing.
	Observer Observer
}

// Permanent is an error of Dial or Prepare that trying again does not mend, when its
// method returns true: a wrong password, a queue of another type. It ends Run when it
// comes before the first consumer has started; later ones are tried again, since an
// operator may be mending the broker.
type Permanent interface {
	error
	Permanent() bool
}

// permanent reports whether err is, or wraps, a Permanent error.
func permanent(err error) bool {
	var p Permanent
	return errors.As(err, &p) && p.Permanent()
}

// Queue is one queue to consume.
type Queue struct {
	Policy      settle.Policy
	Hook        hooks.Hook
	Timeout     time.Duration // of one hook call; 0: it may take for ever
	Prefetch    int           // 1 to 65535: AMQP takes 0 for no bound at all
	Concurrency int           // hook calls at a time, whatever happens to connections; at least 1
	Rate        float64       // hook calls per second, at most; 0: no limit
	Breaker     Breaker
	Order       Order
	Batch       Batch    // needs a Hook that is a hooks.BatchHook
	Waiting     []string // queues on the broker where delayed retries wait
	Consumer    Consumer
	Publisher   Publisher
	// Arrivals are the ways by which copies of rsctl reach the queue; nil: the
	// default exchange alone. Only there a message's own word for where it first
	// came from is believed.
	Arrivals []settle.Arrival
	// Declare declares a queue that belongs to the connection that consumes it, an
	// exclusive one, before each subscription. nil: Prepare has done it. It may take
	// as long as the broker does; ctx ends with the connection.
	Declare func(ctx context.Context, conn *amqp.Connection) error
	// GoesUnused says that the broker deletes the queue when nobody consumes it: a
	// pause, however long, keeps a consumer.
	GoesUnused bool
	// DeclareAgain declares the queue, which was not there, on a connection of its
	// own. nil: somebody else has to.
	DeclareAgain func(ctx context.Context, conn *amqp.Connection) error
	// DeadLetterRoute says that a rejected message is known to have somewhere to
	// go: it decides how a message too large for any copy ends.
	DeadLetterRoute bool
	// RetryUnavailable settles a delivery whose hook could not be run as a
	// retry instead of pausing the queue.
	RetryUnavailable bool
	// Reply publishes the reply of a hook that acks to the delivery's reply_to,
	// before the ack.
	Reply bool
	// ReplyTo allows reply addresses beside direct reply-to and amq.gen-*: names of
	// queues, in which * stands for any characters.
	ReplyTo []string
}

// Consumer holds the arguments of basic.consume.
type Consumer struct {
	Tag       string // a suffix makes it unique per channel
	Exclusive bool
	// SingleActive says that the queue has a single active consumer.
	SingleActive bool
	Arguments    map[string]any
}

// Publisher overrides properties of the copies of a classic queue; nil leaves
// them as the original has them.
type Publisher struct {
	Persistent *bool
	Priority   *uint8
}

func (q Queue) reader() message.Reader {
	return message.Reader{Queue: q.Policy.Queue, Type: q.Policy.Type, Arrivals: q.Arrivals}
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.ShutdownTimeout <= 0 {
		c.ShutdownTimeout = DefaultShutdownTimeout
	}
	if c.ConfirmTimeout <= 0 {
		c.ConfirmTimeout = DefaultConfirmTimeout
	}
	if c.Bodies == nil {
		c.Bodies = memory.NewBodies(memory.Default, c.Log)
	}
	return c
}

// problems collects what is wrong with a Config.
type problems []error

func (p *problems) unless(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// validate returns everything that is wrong, one error a line.
func (c Config) validate() error {
	var p problems
	p.unless(c.Dial != nil, "no Dial: there is no way to reach the broker")
	p.unless(c.Log != nil, "no Log: give one; slog.New(slog.DiscardHandler) is silent")
	p.unless(len(c.Queues) > 0, "no queues: there is nothing to consume")
	p.unless(c.DrainTimeout == 0 || c.Drain, "a DrainTimeout without Drain: nothing would end after it")
	p.unless(c.ShutdownTimeout >= 0 && c.ConfirmTimeout >= 0 && c.DrainTimeout >= 0, "a timeout is negative")
	seen := map[string]bool{}
	for i, q := range c.Queues {
		name := q.Policy.Queue
		p.unless(name != "", "queue %d: its Policy names no queue", i+1)
		p.unless(name == "" || !seen[name], "queue %q is there twice: each would get a part of its messages", name)
		seen[name] = true
		q.validate(&p)
	}
	return errors.Join(p...)
}

func (q Queue) validate(p *problems) {
	const most = 65535 // of AMQP's 16 bits
	name := q.Policy.Queue
	p.unless(q.Policy.Type == settle.Classic || q.Policy.Type == settle.Quorum, "queue %q: type %q is neither classic nor quorum", name, q.Policy.Type)
	p.unless(q.Policy.MaxAttempts >= 0, "queue %q: max attempts is %d; 0 is no cap", name, q.Policy.MaxAttempts)
	p.unless(q.Hook != nil, "queue %q: it has no Hook", name)
	p.unless(q.Prefetch >= 1 && q.Prefetch <= most, "queue %q: prefetch is %d, not 1 to %d; AMQP takes 0 for no bound at all", name, q.Prefetch, most)
	p.unless(q.Concurrency >= 1, "queue %q: concurrency is %d, and nothing would run", name, q.Concurrency)
	p.unless(q.Timeout >= 0, "queue %q: the timeout is negative", name)
	p.unless(q.Rate >= 0, "queue %q: the rate is negative; 0 is no limit", name)
	p.unless(q.Breaker.Failures >= 0 && q.Breaker.Cooldown >= 0, "queue %q: the breaker's failures or cooldown are negative", name)
	p.unless(q.Batch.Size >= 0 && q.Batch.Size <= most && q.Batch.Wait >= 0, "queue %q: a batch has 1 to %d messages and waits for no negative time; size 0 is no batch", name, most)
	if _, takes := q.Hook.(hooks.BatchHook); q.Batch.Size > 0 && q.Hook != nil {
		p.unless(takes, "queue %q: its handler takes no batches", name)
	}
	switch q.Order.By {
	case "", OrderByRoutingKey, OrderByCorrelationID:
	case OrderByHeader:
		p.unless(q.Order.Header != "", "queue %q: it is ordered by a header that has no name", name)
	default:
		p.unless(false, "queue %q: it cannot be ordered by %q", name, q.Order.By)
	}
}
