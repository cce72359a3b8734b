package runtime

import (
	"slices"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/keyorder"
	"github.com/rsctl/rsctl/pkg/runtime/message"
)

// handleBatch is what handle is for deliveries of one subscription that share a
// hook call: one slot, one turn of the rate and of each key, and a settlement for
// each.
func (c *consumer) handleBatch(st lifetimes, ds []*delivery) {
	sub, keys := ds[0].sub, keyorder.Keys(ds)
	ds = slices.DeleteFunc(ds, func(d *delivery) bool {
		c.understand(d)
		if c.q.Policy.Oversized(len(d.Body)) {
			c.handlers.Go(func() {
				c.settlement(st, d, hooks.Outcome{}).endOversized()
				c.release(d)
			})
			return true
		}
		if !c.succeeded(d) {
			return false
		}
		c.conclude(st, d, hooks.Outcome{Verdict: hooks.Ack}, true)
		c.release(d)
		return true
	})
	var outcomes []hooks.Outcome
	answered := false
	if len(ds) > 0 {
		outcomes, answered = c.answerBatch(st, ds)
	}
	free := func() {
		c.order.Release(keys)
		<-c.slots
	}
	if sub.taken() {
		defer free() // the next batch may hold the redeliveries: lost acks must be known by then
	} else {
		free()
	}
	for i, d := range ds {
		switch {
		case !answered:
			c.conclude(st, d, hooks.Outcome{}, false)
			c.release(d)
		case outcomes[i].Verdict == hooks.Ack && outcomes[i].Reply == nil:
			c.conclude(st, d, outcomes[i], true)
			c.release(d)
		default: // it may have to wait, for a delay or for the confirm of a copy or a reply
			c.handlers.Go(func() {
				c.conclude(st, d, outcomes[i], true)
				c.release(d)
			})
		}
	}
}

// answerBatch returns one outcome for each delivery; answered is false when no
// hook has seen them.
func (c *consumer) answerBatch(st lifetimes, ds []*delivery) (each []hooks.Outcome, answered bool) {
	ms, bodies := make([]hooks.Message, len(ds)), 0
	for i, d := range ds {
		bodies += len(d.Body)
		ms[i] = message.ForHook(c.queue, c.q.Policy.MaxAttempts, d.reading, &d.Delivery)
	}
	all, answered := c.ask(st, ds[0].sub, bodies, func() (hooks.Outcome, error) {
		var err error
		each, err = c.observedBatch(st.work, ds, ms)
		return summary(each), err
	})
	if each == nil {
		each = []hooks.Outcome{all} // no call has worked
	}
	return hooks.Spread(each, len(ds)), answered
}

// summary is what a batch says about its hook: one that is done with any message
// works.
func summary(each []hooks.Outcome) hooks.Outcome {
	if len(each) == 0 {
		return hooks.Outcome{}
	}
	done := slices.IndexFunc(each, func(o hooks.Outcome) bool { return o.Verdict == hooks.Ack || o.Verdict == hooks.Drop })
	return each[max(done, 0)]
}
