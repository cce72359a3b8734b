package topology

import (
	"slices"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// trips returns the ways of q's copies that something other than the default
// exchange has a part in.
func trips(q *spec.Queue) []Trip {
	var out []Trip
	add := func(t Trip) {
		t.Queue = q.Name
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	p := Policy(q)
	if p.Delay != nil && p.Delay.Mode == settle.ModeCopy {
		for _, d := range samples(q, p.Delay.Max) {
			to := p.Delay.Route(d)
			add(Trip{What: "delayed retries", To: q.Name, Exchange: to.Exchange, Key: to.Key, Expires: to.Expiration > 0, Delayed: to.XDelay > 0, Pos: q.At("delay")})
		}
	}
	if p.RetryExchange == "" {
		return out
	}
	at := q.At("retry_publisher")
	add(Trip{What: "retries", To: q.Name, Exchange: p.RetryExchange, Key: q.Name, Pos: at})
	if q.DeadLetter != "" {
		add(Trip{What: "dead letters", To: q.DeadLetter, Exchange: p.RetryExchange, Key: q.DeadLetter, Pos: at})
	}
	return out
}

// samples are delays that together use every place where copies of q can wait: of
// the ladder, one that waits on each level, and one that passes all but the first.
func samples(q *spec.Queue, limit time.Duration) []time.Duration {
	list := append([]time.Duration{time.Second, limit/2 + time.Second/2, limit}, q.Delay.Tiers...)
	return slices.DeleteFunc(list, func(d time.Duration) bool { return d > limit || d <= 0 })
}
