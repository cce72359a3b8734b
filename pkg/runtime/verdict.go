package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

// ErrCutShort is returned by Run when a drain ended before all that was in hand
// had: by the shutdown timeout, because work ended, or because a result or a held
// copy could not be sent any more. What wraps it says which.
var ErrCutShort = errors.New("stopped before the drain was over")

// ErrNotDrained is returned by Run when the queues were not empty within
// Config.DrainTimeout. What wraps it says what was left.
var ErrNotDrained = errors.New("the queues are not empty")

// finishing follows the end of intake until life is done.
func (r *runner) finishing(intake, work, life context.Context) (*finishing, func()) {
	until, end := context.WithCancel(work)
	return &finishing{intake, until}, func() {
		defer end()
		select {
		case <-intake.Done():
			backoff.Sleep(finishShare(r.cfg.ShutdownTimeout), until.Done(), life.Done())
		case <-life.Done():
		}
	}
}

// verdict is what Run says of a stop: cut is the cause for which work ended, stop
// the one for which intake did.
func (r *runner) verdict(cut, stop error) error {
	held := 0
	for _, c := range r.consumers {
		held += c.timers.Count()
	}
	results := r.short.results.Load()
	switch {
	case held > 0:
		return fmt.Errorf("%w: delayed copies that waited in the process are lost: %d", ErrCutShort, held)
	case cut != nil:
		return fmt.Errorf("%w: %w", ErrCutShort, cut)
	case results > 0 && r.short.alone.Load():
		return fmt.Errorf("%w: results that could not be settled any more: %d", ErrCutShort, results)
	case errors.Is(stop, ErrNotDrained):
		return stop
	}
	return nil
}

// limitQueues ends a Drain that takes longer than it may.
func (r *runner) limitQueues(intake, life context.Context, stop context.CancelCauseFunc) {
	if !r.cfg.Drain || r.cfg.DrainTimeout <= 0 {
		return
	}
	if backoff.Sleep(r.cfg.DrainTimeout, intake.Done(), life.Done()) {
		stop(fmt.Errorf("%w: %s", ErrNotDrained, r.left()))
	}
}

// lastLook bounds how long the broker is asked what is left.
const lastLook = 2 * time.Second

// namedLeft is how many queues are named with what is left in them.
const namedLeft = 8

// left says in one line what a Drain has not done.
func (r *runner) left() string {
	s := r.looking.Load()
	if s == nil {
		return "there is no connection to the broker"
	}
	ctx, cancel := context.WithTimeout(s.ctx, lastLook)
	defer cancel()
	l := &depthProbe{session: s, stop: ctx.Done()}
	var parts []string
	for _, c := range r.consumers {
		if text := c.left(l); text != "" {
			parts = append(parts, text)
		}
	}
	if n := len(parts) - namedLeft; n > 0 {
		parts = append(parts[:namedLeft], fmt.Sprintf("%d more queues", n))
	}
	if len(parts) == 0 {
		return "they became empty just now"
	}
	return strings.Join(parts, "; ")
}

// left says what a queue has left; "" is nothing.
func (c *consumer) left(l *depthProbe) string {
	ready, err := l.ready(c.queue)
	hand, held := c.inHand.Load(), c.timers.Count()
	switch {
	case err != nil:
		return fmt.Sprintf("queue %q does not say (%v), %d in hand, %d held for later", c.queue, err, hand, held)
	case ready == 0 && hand == 0 && held == 0:
		return ""
	}
	return fmt.Sprintf("queue %q has %d ready, %d in hand, %d held for later", c.queue, ready, hand, held)
}
