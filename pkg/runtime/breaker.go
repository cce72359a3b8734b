package runtime

import (
	"log/slog"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// newBreaker returns what pauses a queue.
func (s *settler) newBreaker(limits breaker.Limits) *breaker.Breaker {
	changes := &changeLog{log: s.log}
	return breaker.New(breaker.Settings{
		Failures: s.q.Breaker.Failures,
		Cooldown: s.q.Breaker.Cooldown,
		Limits:   limits,
		Changed: func(change breaker.Change) {
			changes.tell(change)
			if change.State == breaker.Open {
				tell(s.obs, Paused{s.queue, change.Err})
			} else {
				tell(s.obs, Resumed{s.queue})
			}
		},
	})
}

// pauseLoggedEvery is how often a queue that is paused and goes on again and again
// says so.
const pauseLoggedEvery = 10 * time.Second

// changeLog logs what happens to the breaker of a queue. Where some calls can be
// made and others cannot (few descriptors are left, say) it opens and closes
// hundreds of times a second: a pause that begins shortly after one that was logged
// is only counted, unless it lasts until a try has failed.
type changeLog struct {
	log    *slog.Logger
	last   time.Time // a pause was logged
	silent bool      // the pause under way was not
	left   int       // how many were not, since then
}

func (l *changeLog) tell(change breaker.Change) {
	switch {
	case change.State == breaker.Closed:
		if !l.silent {
			l.log.Info("handler available again", logkey.PausedFor, change.For.Round(time.Millisecond))
		}
		l.silent = false
	case change.Fails && change.Still:
		l.log.Warn("handler still fails; queue stays paused", logkey.Error, change.Err, logkey.RetryIn, change.For)
	case change.Fails:
		l.log.Error("handler fails every time; queue paused", logkey.Error, change.Err, logkey.RetryIn, change.For)
	case change.Still && !l.silent:
		l.log.Warn("handler still unavailable", logkey.Error, change.Err)
	default:
		l.unavailable(change)
	}
}

// unavailable logs that a queue is paused. A pause that was only counted is logged
// when a try has failed.
func (l *changeLog) unavailable(change breaker.Change) {
	if !change.Still && time.Since(l.last) < pauseLoggedEvery {
		l.silent = true
		l.left++
		return
	}
	if l.silent {
		l.silent = false
		l.left--
	}
	attrs := []any{logkey.Error, change.Err}
	if l.left > 0 {
		attrs = append(attrs, logkey.NotLogged, l.left)
	}
	l.last, l.left = time.Now(), 0
	l.log.Error("handler unavailable; queue paused, no attempt is spent", attrs...)
}

// note tells the breaker what a handler that was called has answered.
func note(b *breaker.Breaker, t breaker.Token, o hooks.Outcome) {
	if o.Verdict == hooks.Ack || o.Verdict == hooks.Drop {
		b.Succeeded(t)
	} else {
		b.Failed(t, o.Reason)
	}
}
