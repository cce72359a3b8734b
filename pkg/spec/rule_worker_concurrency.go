package spec

import "fmt"

func checkWorkerConcurrency(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		h := q.Handler
		if h == nil || h.Kind != Worker || h.Processes == 0 || !q.sound("concurrency", "handler") {
			continue
		}
		if calls := h.Processes * h.Pipeline; calls < q.Concurrency {
			report(q.At("handler.processes"), fmt.Sprintf("processes %d x pipeline %d is below concurrency %d: only %d handlers can ever run at a time", h.Processes, h.Pipeline, q.Concurrency, calls),
				"raise processes or pipeline, or lower concurrency")
		}
	}
}
