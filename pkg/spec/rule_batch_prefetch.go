package spec

import "fmt"

func checkBatchPrefetch(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Batch != nil && q.Batch.Size > q.Prefetch && q.sound("batch", "prefetch", "concurrency") {
			report(q.At("batch.size"), fmt.Sprintf("batch size %d is above prefetch %d: run raises it, since a batch would never fill", q.Batch.Size, q.Prefetch),
				"raise prefetch to concurrency x size, or leave it out")
		}
	}
}
