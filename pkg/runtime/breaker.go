package runtime

import (
	"log/slog"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

// Breaker pauses a queue after Failures retries or failed hooks in a row, with no
// ack or drop between them. After Cooldown one delivery tries the hook, and again
// after each that fails. The zero Breaker never does.
type Breaker struct {
	Failures int
	Cooldown time.Duration
}

var (
	errStopped = breaker.ErrStopped
	errPaused  = breaker.ErrPaused
)

// breakerOf returns what pauses the queue of c.
func breakerOf(c *consumer, limits breaker.Limits) *breaker.Breaker {
	return breaker.New(breaker.Settings{
		Failures: c.q.Breaker.Failures,
		Cooldown: c.q.Breaker.Cooldown,
		Limits:   limits,
		Changed: func(change breaker.Change) {
			logChange(c.log, change)
			if change.State == breaker.Open {
				tell(c.obs, Paused{c.queue, change.Err})
			} else {
				tell(c.obs, Resumed{c.queue})
			}
		},
	})
}

func logChange(log *slog.Logger, change breaker.Change) {
	switch {
	case change.State == breaker.Closed:
		log.Info("handler available again", keyPausedFor, change.For.Round(time.Millisecond))
	case change.Fails && change.Still:
		log.Warn("handler still fails; queue stays paused", keyError, change.Err, keyIn, change.For)
	case change.Fails:
		log.Error("handler fails every time; queue paused", keyError, change.Err, keyIn, change.For)
	case change.Still:
		log.Warn("handler still unavailable", keyError, change.Err)
	default:
		log.Error("handler unavailable; queue paused, no attempt is spent", keyError, change.Err)
	}
}

// note tells the breaker what a handler that was called has answered.
func note(b *breaker.Breaker, t breaker.Token, o hooks.Outcome) {
	if o.Verdict == hooks.Ack || o.Verdict == hooks.Drop {
		b.Succeeded(t)
	} else {
		b.Failed(t, o.Reason)
	}
}
