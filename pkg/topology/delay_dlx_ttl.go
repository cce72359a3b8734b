package topology

import (
	"slices"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// maxTTL is the longest TTL a RabbitMQ server accepts: ten years.
const maxTTL = 315_360_000_000 * time.Millisecond

// dlxTTL lets the copy expire in a waiting queue that dead-letters it back to
// its queue.
//
// A queue releases expired messages only from its head, quorum queues too, so
// that a short delay behind a long one waits for the long one. With tiers there
// is one waiting queue per delay and messages leave in the order they came; a
// copy then waits its whole tier, the smallest that is long enough.
type dlxTTL struct{}

func (dlxTTL) base(q *spec.Queue) string {
	if q.Delay.WaitingQueue != "" {
		return q.Delay.WaitingQueue
	}
	return q.Name + ".retry"
}

func (s dlxTTL) needs(q *spec.Queue) fragment {
	if len(q.Delay.Tiers) == 0 {
		return fragment{queues: []Queue{waitingQueue(q, s.base(q))}}
	}
	var f fragment
	for _, tier := range sortedTiers(q) {
		w := waitingQueue(q, s.tierName(q, tier))
		// The queue's own TTL also frees a message that somebody published
		// here without an expiration and that would block the head for ever.
		w.Arguments["x-message-ttl"] = tier.Milliseconds()
		f.queues = append(f.queues, w)
	}
	return f
}

func (s dlxTTL) delay(q *spec.Queue) settle.Delay {
	tiers := sortedTiers(q)
	if len(tiers) == 0 {
		name := s.base(q)
		return settle.Delay{Mode: settle.ModeCopy, Max: maxTTL, Route: func(d time.Duration) settle.Target {
			return settle.Target{Key: name, Queue: name, Expiration: ceil(d, time.Millisecond)}
		}}
	}
	return settle.Delay{Mode: settle.ModeCopy, Max: tiers[len(tiers)-1], Route: func(d time.Duration) settle.Target {
		tier := tierFor(tiers, d)
		name := s.tierName(q, tier)
		return settle.Target{Key: name, Queue: name, Expiration: tier}
	}}
}

// waitingQueue declares a queue that sends everything back to q. On quorum it
// dead-letters at least once, which needs reject-publish: otherwise the server
// falls back to at-most-once with one line in its own log.
func waitingQueue(q *spec.Queue, name string) Queue {
	args := map[string]any{
		"x-queue-type":              string(q.Type),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": q.Name,
	}
	if q.Type == spec.Quorum {
		args = with(args, atLeastOnce)
	}
	return Queue{
		Name: name, Type: settle.Type(q.Type), Durable: true,
		Arguments: args, Origin: Origin{Role: RoleWaiting},
	}
}

var atLeastOnce = map[string]any{
	"x-dead-letter-strategy": "at-least-once",
	"x-overflow":             "reject-publish",
}

// tierFor returns the smallest tier that is at least d, else the largest.
func tierFor(tiers []time.Duration, d time.Duration) time.Duration {
	for _, t := range tiers {
		if t >= d {
			return t
		}
	}
	return tiers[len(tiers)-1]
}

// sortedTiers are the tiers of q, ascending, in whole milliseconds, each once.
func sortedTiers(q *spec.Queue) []time.Duration {
	tiers := make([]time.Duration, 0, len(q.Delay.Tiers))
	for _, t := range q.Delay.Tiers {
		tiers = append(tiers, min(max(ceil(t, time.Millisecond), time.Millisecond), maxTTL))
	}
	slices.Sort(tiers)
	return slices.Compact(tiers)
}

// tierName is the same however the spec writes the delay: 60s and 1m are "1m".
func (s dlxTTL) tierName(q *spec.Queue, tier time.Duration) string {
	return s.base(q) + "." + spec.FormatDuration(tier)
}
