package runtime

import (
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/frames"
	"github.com/rsctl/rsctl/pkg/hooks"
)

// meet takes a delivery and sees to the prefetch that it calls for. It reports
// false when no further ones are to be read.
func (c *consumer) meet(st lifetimes, sub *subscription, raw amqp.Delivery, rest <-chan amqp.Delivery, only *loner) bool {
	change := c.caution.meet(&raw)
	goesOn := true
	if change != unchanged {
		// While raw is in hand: in the place of one that is settled at the moment of
		// the cancel the broker sends another, which nobody would see.
		goesOn = c.changePrefetch(sub)
	}
	if change == retreats && goesOn {
		c.handBackSuspects(st, sub, raw, rest)
		return false
	}
	d := c.receive(sub, raw)
	*only = loner{}
	if c.caution.alone {
		*only = newLoner(d)
	}
	c.take(st, d)
	return goesOn
}

// handBackSuspects ends what a cancelled consumer had been sent before it was known
// that there are suspects. The others run; the suspects are handed back, which
// costs nothing where a queue retreats.
func (c *consumer) handBackSuspects(st lifetimes, sub *subscription, first amqp.Delivery, deliveries <-chan amqp.Delivery) {
	suspects := []amqp.Delivery{first}
	for raw := range deliveries {
		if counted(&raw) && !c.caution.own.Has(&raw) {
			suspects = append(suspects, raw)
			continue
		}
		c.take(st, c.receive(sub, raw))
	}
	for _, raw := range suspects {
		d := c.receive(sub, raw)
		c.endUnseen(d)
		c.release(d)
	}
}

// setAside ends a delivery whose headers the client library cannot read, in the
// background and without a hook. It reports false for every other one.
func (c *consumer) setAside(st lifetimes, d *delivery) bool {
	mark, unreadable := frames.Marked(d.Headers)
	if !unreadable {
		return false
	}
	d.Headers = nil
	c.handlers.Go(func() {
		c.understand(d)
		c.settlement(st, d, hooks.Outcome{Verdict: hooks.Drop, Reason: mark.Reason}).endUnreadable(mark)
		c.release(d)
	})
	return true
}
