package spec

import "fmt"

func checkPrefetchConcurrency(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Prefetch < q.Concurrency && q.Concurrency <= maxPrefetch && q.sound("prefetch", "concurrency") {
			report(q.At("prefetch"), fmt.Sprintf("prefetch %d is smaller than concurrency %d: only %d handlers can ever run at a time", q.Prefetch, q.Concurrency, q.Prefetch),
				"raise prefetch to concurrency or above, or leave it out")
		}
	}
}

// maxPrefetch is what AMQP's basic.qos can say.
const maxPrefetch = 65535
