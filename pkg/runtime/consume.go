package runtime

import (
	"errors"
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

const (
	resubscribeMin = 500 * time.Millisecond
	resubscribeMax = 10 * time.Second
)

// consume subscribes again and again until intake is done or the session is
// lost: a channel that ends, or a consumer that the server cancels, concerns
// this queue only.
func (c *consumer) consume(st lifetimes, s *session) {
	wait := backoff.New(resubscribeMin, resubscribeMax)
	for !st.stopping() && s.ctx.Err() == nil {
		started := time.Now()
		sub, err := c.attempt(st, s)
		if errors.Is(err, errOtherPrefetch) && !st.stopping() && s.ctx.Err() == nil {
			continue
		}
		c.caution.reconnected()
		if errors.Is(err, breaker.ErrStopped) || errors.Is(err, errOtherPrefetch) {
			err = nil
		}
		tell(c.obs, NotConsuming{c.queue, err})
		if st.stopping() || s.ctx.Err() != nil {
			return
		}
		if errors.Is(err, breaker.ErrPaused) && c.q.GoesUnused {
			continue
		}
		if errors.Is(err, breaker.ErrPaused) {
			c.waitWhilePaused(st, s, sub)
			continue
		}
		if errors.Is(err, errCrowded) {
			continue
		}
		if time.Since(started) > resubscribeMax && !errors.Is(err, errNoAnswer) {
			wait.Reset()
		}
		d := wait.Next()
		c.reportFailure(err, d)
		if !backoff.Sleep(d, st.intake.Done(), s.ctx.Done()) {
			return
		}
	}
}

// attempt subscribes once and handles deliveries until the subscription ends,
// which the error is about.
func (c *consumer) attempt(st lifetimes, s *session) (*subscription, error) {
	s, leave, err := c.place(st, s)
	if err != nil {
		return nil, err
	}
	if err := c.declareOwn(st, s); err != nil {
		c.handlers.Go(leave)
		return nil, err
	}
	c.caution.serve(handsBackFree(s.conn))
	sub, deliveries := c.successors.take(s)
	if sub == nil {
		sub, deliveries, err = c.subscribe(st, s)
	}
	if err != nil {
		c.handlers.Go(leave)
		return nil, c.declareAgain(st, err)
	}
	c.latest.Store(sub)
	c.reportConsuming(sub)
	c.handlers.Go(sub.watch)
	if c.finishes(sub) {
		c.handlers.Go(func() { c.cancelAtStop(st, sub) })
	}
	if c.q.Order.By != "" && c.q.Batch.Size == 0 { // batches clear up themselves
		c.handlers.Go(func() { c.clearWaiting(c.handling(st, sub), sub) })
	}
	if c.q.Batch.Size > 0 {
		c.readBatches(st, sub, deliveries)
	} else {
		c.read(st, sub, deliveries)
	}
	if sub.polling != nil && sub.polling.empty {
		c.caution.alone = false
	}
	if !st.stopping() {
		err = sub.reason()
	}
	c.handlers.Go(func() {
		c.retire(sub)
		leave()
	})
	return sub, err
}

// waitWhilePaused waits until the queue is not paused any more. The delivery that probes
// is the last one in hand; when it has to go as well, another must come.
func (c *consumer) waitWhilePaused(st lifetimes, s *session, sub *subscription) {
	c.log.Warn("queue paused for long; its messages are handed back until the handler works")
	for {
		changed := c.breaker.Changing()
		if changed == nil {
			changed = c.stall.ending()
		}
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-sub.ctx.Done():
			return
		case <-st.intake.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}
