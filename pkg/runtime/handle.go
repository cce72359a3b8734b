package runtime

import (
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// handle runs the hook on one delivery and settles it. It owns one slot, and the
// turn of its key, until the hook has answered: settling, with the waiting that
// may belong to it, keeps only the delivery's place in the prefetch.
func (c *consumer) handle(st lifetimes, d *delivery) {
	c.understand(d)
	if c.q.Policy.Oversized(len(d.Body)) {
		c.passTurn(st, d)
		c.settlement(st, d, hooks.Outcome{}).endOversized()
		return
	}
	outcome, answered := c.answer(st, d)
	d.hasRun()
	if d.sub.taken() {
		defer c.passTurn(st, d) // which may be d's redelivery: a lost ack must be known by then
	} else {
		c.passTurn(st, d)
	}
	c.conclude(st, d, outcome, answered)
}

func (c *consumer) understand(d *delivery) {
	d.reading = c.q.reader().Read(&d.Delivery)
	if problem := d.reading.CountProblem; problem != "" {
		c.warned.once("retry count not understood", problem, logkey.MessageID, d.MessageId)
	}
}

// conclude ends a delivery; answered is false when no hook has seen it.
func (c *consumer) conclude(st lifetimes, d *delivery, outcome hooks.Outcome, answered bool) {
	switch {
	case d.sub.err() != nil && !answered: // gone while it waited; the broker redelivers it
		c.lose()
	case !answered:
		c.endUnseen(d)
	case st.work.Err() != nil && (outcome.Verdict == hooks.Failed || outcome.Verdict == hooks.Retry):
		c.log.Warn("handler stopped by the shutdown; its delivery is requeued", logkey.MessageID, d.MessageId, logkey.Attempt, d.reading.Attempt)
		_ = c.settlement(st, d, outcome).recover(settle.Stopped) // it publishes nothing
	default:
		c.settlement(st, d, outcome).settle()
	}
}

// answer returns the hook's outcome; answered is false when no hook has seen
// the delivery.
func (c *consumer) answer(st lifetimes, d *delivery) (outcome hooks.Outcome, answered bool) {
	if c.succeeded(d) {
		return hooks.Outcome{Verdict: hooks.Ack}, true
	}
	m := message.ForHook(c.queue, c.q.Policy.MaxAttempts, d.reading, &d.Delivery)
	return c.ask(st, d.sub, len(d.Body), func() (hooks.Outcome, error) { return c.observed(st.work, d, m) })
}

// succeeded reports whether d has been handled before and only its ack was lost.
func (c *consumer) succeeded(d *delivery) bool {
	if !d.Redelivered || !c.lost.Take(&d.Delivery) {
		return false
	}
	c.log.Info("acked without running the handler again: it has succeeded, and its ack came too late", logkey.MessageID, d.MessageId)
	return true
}
