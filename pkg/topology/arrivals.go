package topology

import (
	"slices"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Arrivals returns every way by which copies that rsctl has published reach q.
// What a message says about its own origin is believed only where it came by one
// of them: from any other exchange a publisher has sent it.
func Arrivals(s *spec.Spec, q *spec.Queue) []settle.Arrival {
	out := []settle.Arrival{{Key: q.Name}} // the default exchange
	add := func(a settle.Arrival) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	needs := delayNeeds(q)
	for _, b := range needs.bindings {
		switch {
		case b.Destination != q.Name || b.ToExchange:
		case b.RoutingKey == q.Name:
			add(settle.Arrival{Exchange: b.Source, Key: q.Name})
		default: // the ladder delivers with the key that it climbed down by, from the exchange below the last level that it waited in
			for _, x := range needs.exchanges {
				if x.Name == ladderNowhere {
					continue
				}
				add(settle.Arrival{Exchange: x.Name})
			}
		}
	}
	for i := range s.Queues {
		from := &s.Queues[i]
		if from.RetryPublisher != nil && (from.Name == q.Name || from.DeadLetter == q.Name) {
			add(settle.Arrival{Exchange: from.RetryPublisher.Exchange, Key: q.Name})
		}
	}
	for _, name := range WaitingQueues(q) {
		// One that the file declares may lead back through another exchange.
		if w := s.Queue(name); w != nil && w.DeadLetterExchange != nil && *w.DeadLetterExchange != "" && w.DeadLetterRoutingKey != nil {
			add(settle.Arrival{Exchange: *w.DeadLetterExchange, Key: *w.DeadLetterRoutingKey})
		}
	}
	return out
}
