package runtime

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/frames"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// setAside ends a delivery whose headers the client library cannot read, in the
// background and without a hook. It reports false for every other one.
func (c *consumer) setAside(st stages, d *delivery) bool {
	mark, unreadable := frames.Marked(d.Headers)
	if !unreadable {
		return false
	}
	d.Headers = nil
	c.handlers.Go(func() {
		c.understand(d)
		c.endUnreadable(st, d, mark)
		c.letGo(d)
	})
	return true
}

// endUnreadable ends a delivery by what needs no headers: by the queue's
// dead-letter route, which takes the original as it is, or else by a copy without
// headers in the dead-letter queue. Without either it stays unsettled.
func (c *consumer) endUnreadable(st stages, d *delivery, mark frames.Mark) {
	p := c.q.Policy
	o := hooks.Outcome{Verdict: hooks.Drop, Reason: mark.Reason}
	switch {
	case d.sub.err() != nil || st.stopping():
		c.unseen(d)
	case c.q.DeadLetterRoute && (!mark.Died || p.DeadLetter == ""):
		c.rejectUnreadable(st, d, o)
	case p.DeadLetter != "":
		c.copyUnreadable(st, d, o)
	default:
		c.park(st, d, o)
	}
}

func (c *consumer) reportUnreadable(d *delivery, o hooks.Outcome, next string) {
	c.log.Error("a message cannot be read; no handler sees it", logkey.MessageID, d.MessageId, logkey.Exchange, d.Exchange,
		logkey.RoutingKey, d.RoutingKey, logkey.Bytes, len(d.Body), logkey.Reason, o.Reason, logkey.Next, next)
}

// rejectUnreadable leaves the message to the server, once it can be trusted to
// dead-letter it.
func (c *consumer) rejectUnreadable(st stages, d *delivery, o hooks.Outcome) {
	v := &vigil{c: c, st: st, d: d}
	defer v.end()
	for c.deadLetters(d, settle.Reject{}) && d.sub.err() == nil && c.route.missing(d.sub.session.conn) {
		if !v.again(c.q.Policy.DeadLetter, errNoDeadLetterQueue) {
			c.unseen(d)
			return
		}
	}
	c.reportUnreadable(d, o, "rejected to the queue's dead-letter route, whole")
	c.finish(d, settle.Reject{}, o)
}

// copyUnreadable puts the body and the properties into the dead-letter queue.
func (c *consumer) copyUnreadable(st stages, d *delivery, o hooks.Outcome) {
	p := c.q.Policy
	grave := settle.Copy{To: settle.Target{Key: p.DeadLetter, Queue: p.DeadLetter}, Purpose: settle.ForDeadLetter, Reason: settle.ReasonUnreadable}
	if p.Type == settle.Classic {
		grave.To.Exchange = p.RetryExchange
	}
	v := &vigil{c: c, st: st, d: d}
	defer v.end()
	switch err := c.arrive(v, c.outgoing(d, o, grave)); {
	case err == nil:
		c.reportUnreadable(d, o, "a copy without its headers is in the dead-letter queue")
		c.finish(d, p.AfterCopy(), o)
	case hopeless(err):
		c.park(st, d, o)
	default:
		c.unseen(d)
	}
}

const (
	// parkedFor is how long a message stays unsettled that has nowhere to go, well
	// within the server's consumer timeout of 30 minutes.
	parkedFor = 20 * time.Minute
	// maxParked bounds how many of them a queue keeps; each may need a channel.
	maxParked = 100
	// parkedBeyond paces what comes beyond.
	parkedBeyond = 30 * time.Second
)

// errCrowded ends a subscription whose prefetch is taken by parked messages.
var errCrowded = errors.New("messages that have nowhere to go take its places")

// park keeps a message that has nowhere to go. At the end it goes back to its
// queue.
func (c *consumer) park(st stages, d *delivery, o hooks.Outcome) {
	c.reportUnreadable(d, o, "kept in its queue, which has no dead-letter route: "+
		"give it a dead_letter, or take the message out with a client that reads such headers")
	c.keepAside(st, d)
	c.unseen(d)
}

// keepAside keeps a delivery unsettled for long, and gets the queue other places in
// its stead: a new subscription, while this one keeps what it has.
func (c *consumer) keepAside(st stages, d *delivery) {
	pause := parkedBeyond
	if c.parked.Add(1) <= maxParked {
		pause = parkedFor
		if int(d.sub.parked.Add(1)) >= max(1, c.q.Prefetch/2) && c.replaceable(st, d.sub) {
			d.sub.setReason(errCrowded)
			c.stopConsuming(d.sub)
		}
	}
	backoff.Sleep(pause, c.asked(st).Done(), d.sub.ctx.Done()) // a stop has nothing to run here
	c.parked.Add(-1)
}

// replaceable reports whether another subscription can follow sub: not on a queue
// that belongs to its connection, and on one that goes with its last consumer only
// when the next one is there before.
func (c *consumer) replaceable(st stages, sub *subscription) bool {
	switch {
	case c.q.Declare != nil:
		return false
	case !c.q.GoesUnused:
		return true
	}
	return c.heirs.open(sub, func() (*subscription, <-chan amqp.Delivery, error) { return c.subscribe(st, sub.session) }) == nil
}
