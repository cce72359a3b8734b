package settle

import (
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// Decide returns the steps that end a delivery, in order. Exactly one of them
// settles it, and it is the last; a [Copy] always comes before it.
func Decide(f Facts, o hooks.Outcome, p Policy) []Step {
	switch o.Verdict {
	case hooks.Ack:
		return []Step{Ack{}}
	case hooks.Drop:
		return []Step{Reject{}}
	}
	if p.MaxAttempts > 0 && f.Attempt >= p.MaxAttempts {
		return spent(f, p)
	}
	if d := delayOf(f, o, p); d > 0 {
		return delayed(f, d, p)
	}
	return again(f, p)
}

// delayOf is the delay a retry asks for; 0 for a plain one. A retry_after of
// nothing is a plain retry, so a backoff applies to it too.
func delayOf(f Facts, o hooks.Outcome, p Policy) time.Duration {
	if o.Verdict == hooks.RetryAfter && o.Delay > 0 {
		return o.Delay
	}
	if p.Backoff == nil {
		return 0
	}
	return p.Backoff.After(f.Attempt, f.Jitter)
}

// spent ends a delivery that has used its attempts. A quorum queue is left to
// the server's own limit, unless copies have restarted the server's count or the
// spec wants dead letters that say why.
func spent(f Facts, p Policy) []Step {
	switch {
	case p.Type == Quorum && f.Counted == 0 && !p.EndsSpent:
		return []Step{Reject{Requeue: true}}
	case p.DeadLetter == "":
		return []Step{Warn{WarnDiscarded}, Reject{}}
	}
	return []Step{deadLetterCopy(p, ""), p.settleCopied()}
}

// deadLetterCopy is the copy that ends a message; "" is the reason of spent
// attempts.
func deadLetterCopy(p Policy, reason string) Copy {
	to := Target{Exchange: p.RetryExchange, Key: p.DeadLetter, Queue: p.DeadLetter}
	return Copy{To: to, Purpose: ForDeadLetter, Reason: reason}
}

// again is a retry without a delay.
func again(f Facts, p Policy) []Step { return append(paced(f, p), retried(f, p)...) }

func retried(f Facts, p Policy) []Step {
	if p.MaxAttempts == 0 || p.Type == Quorum {
		return []Step{Reject{Requeue: true}}
	}
	return []Step{retryCopy(f, p), p.settleCopied()}
}

// paced keeps a message that fails again and again from spinning the broker.
func paced(f Facts, p Policy) []Step {
	switch {
	case p.MaxAttempts == 0 && f.Redelivered:
		return []Step{Pace{RequeueFloor}}
	case p.MaxAttempts > 0 && f.Attempt >= StormAttempt:
		return []Step{Pace{StormFloor}}
	}
	return nil
}

// delayed is a retry that asks for d. A quorum queue without a delay has nowhere
// to keep the message for d and nothing to publish.
func delayed(f Facts, d time.Duration, p Policy) []Step {
	if p.Delay == nil || p.Delay.Mode == ModeTimer {
		if p.Type == Quorum {
			return append([]Step{Warn{WarnDelayDropped}}, again(f, p)...)
		}
		steps, d := clamp(d, p.Delay)
		return append(steps, Later{After: d, Copy: retryCopy(f, p)}, p.settleCopied())
	}
	steps, d := clamp(d, p.Delay)
	switch p.Delay.Mode {
	case ModeHold:
		steps = append(steps, Wait{d})
		if d < RequeueFloor {
			return append(steps, again(f, p)...)
		}
		return append(steps, retried(f, p)...)
	case ModeNative:
		return append(steps, Reject{Requeue: true})
	default:
		c := Copy{To: p.Delay.Route(d), Purpose: ForDelay, Count: f.Attempt}
		return append(steps, c, Ack{})
	}
}

// clamp cuts d to what the strategy can hold, with a warning when it has to.
func clamp(d time.Duration, s *Delay) ([]Step, time.Duration) {
	if s == nil || s.Max <= 0 || d <= s.Max {
		return nil, d
	}
	return []Step{Warn{WarnDelayClamped}}, s.Max
}

func retryCopy(f Facts, p Policy) Copy {
	to := Target{Exchange: p.RetryExchange, Key: p.Queue, Queue: p.Queue}
	return Copy{To: to, Purpose: ForRetry, Count: f.Attempt}
}

// settleCopied ends an original whose copy is confirmed. A quorum queue acks: its
// dead-letter route leads to where the copy is.
func (p Policy) settleCopied() Step {
	if p.AckOriginal || p.Type == Quorum {
		return Ack{}
	}
	return Reject{}
}
