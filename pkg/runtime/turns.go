package runtime

// noMore reports whether nothing may wait for its turn any more that came by sub.
func noMore(st lifetimes, sub *subscription) bool { return st.stopping() || sub.err() != nil }

// passTurn ends d's turn: its slot goes to the one that waited for it, or is free.
// What waits has come in before anything that the reader has in hand, so nothing
// is overtaken by it.
func (c *consumer) passTurn(st lifetimes, d *delivery) {
	for next, ok := c.order.Leave(d); ok; next, ok = c.order.Leave(next) {
		if !st.stopping() {
			c.run(st, next)
			return
		}
		c.endUnseen(next)
		c.release(next)
	}
	<-c.slots
}

// clearWaiting ends what waits for its turn once it cannot run any more: handed
// back when the process stops, lost with its channel.
func (c *consumer) clearWaiting(st lifetimes, sub *subscription) {
	select {
	case <-st.intake.Done():
	case <-sub.ctx.Done():
	}
	for _, d := range c.order.Evict(sub.brought) {
		c.endUnseen(d)
		c.release(d)
	}
}
