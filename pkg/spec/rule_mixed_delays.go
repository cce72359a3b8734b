package spec

import "fmt"

// A queue releases expired messages only from its head, quorum queues too.
func checkMixedDelays(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Delay == nil || q.Delay.Strategy != "dlx_ttl" || len(q.Delay.Tiers) > 0 || q.Handler == nil || !q.sound("delay") {
			continue
		}
		report(q.At("delay"), fmt.Sprintf("all delayed retries of queue %q share one waiting queue, where a short delay waits behind a long one", q.shown()),
			"keep delays apart with tiers: [5s, 1m, 10m], or use delay: levels")
	}
}
