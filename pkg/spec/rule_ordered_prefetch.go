package spec

import "fmt"

// A delivery that waits for another of its key keeps its place in the prefetch,
// so the hooks only stay busy when there are more places than hooks.
func checkOrderedPrefetch(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.OrderedBy != nil && q.Concurrency > 1 && q.Prefetch <= q.Concurrency && q.sound("ordered_by", "prefetch", "concurrency") {
			report(q.At("prefetch"), fmt.Sprintf("prefetch %d leaves no room for deliveries that wait for another of their key: fewer than %d handlers run at a time", q.Prefetch, q.Concurrency),
				"raise prefetch to twice concurrency or above, or leave it out")
		}
	}
}
