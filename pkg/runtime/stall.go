package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// stall pauses a queue while copies of its messages cannot arrive: each further
// hook call could make one more message that has nowhere to go. The copies are
// tried again; the first that arrives, or the end of the last that waits, ends it.
type stall struct {
	log    *slog.Logger // names the queue
	obs    Observer
	queue  string
	limits breaker.Limits

	waiting atomic.Int32 // copies
	mu      sync.Mutex
	since   time.Time
	over    chan struct{} // closed when nothing waits any more
}

func newStall(log *slog.Logger, queue string, obs Observer) *stall {
	return &stall{log: log, obs: obs, queue: queue, limits: breaker.UsualLimits()}
}

// begin counts one more copy that waits.
func (s *stall) begin(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.Add(1) == 1 {
		s.since, s.over = time.Now(), make(chan struct{})
		s.log.Error("a copy cannot arrive; queue paused until it does", logkey.Error, err)
	}
	tell(s.obs, CopyStalled{s.queue, err})
}

// end is called once for each begin.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.Add(-1) == 0 {
		close(s.over)
		s.log.Info("no copy waits any more; queue goes on", logkey.PausedFor, time.Since(s.since).Round(time.Millisecond))
	}
	tell(s.obs, CopyMoved{s.queue})
}

// on reports whether a copy waits.
func (s *stall) on() bool { return s.waiting.Load() > 0 }

// ending returns what is closed when nothing waits any more; nil when nothing does.
func (s *stall) ending() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on() {
		return nil
	}
	return s.over
}

// wait returns when no copy waits. It gives up as [breaker.Breaker.Enter] does.
func (s *stall) wait(stop, lost context.Context, held time.Time) error {
	for s.on() {
		s.mu.Lock()
		over, since := s.over, s.since
		s.mu.Unlock()
		if held.Before(since) {
			held = since
		}
		timer := time.NewTimer(time.Until(held.Add(s.limits.Waiting)))
		select {
		case <-over:
			timer.Stop()
		case <-timer.C:
			return breaker.ErrPaused
		case <-stop.Done():
			timer.Stop()
			return breaker.ErrStopped
		case <-lost.Done():
			timer.Stop()
			return breaker.ErrStopped
		}
	}
	return nil
}

// hopeless reports whether a copy can never arrive: it is too large, or the broker
// refuses it for what it is, which its other refusals (no such exchange, no
// permission) are not about.
func hopeless(err error) bool {
	var ex *amqp.Error
	return errors.Is(err, confirm.ErrTooLarge) || errors.Is(err, confirm.ErrRefused) && errors.As(err, &ex) && ex.Code == amqp.PreconditionFailed
}
