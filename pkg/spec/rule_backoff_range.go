package spec

import "fmt"

func checkBackoffRange(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if b := q.Backoff; b != nil && q.sound("backoff") && b.Max > 0 && b.Max < b.Initial {
			report(q.At("backoff.max"), fmt.Sprintf("backoff max %s is shorter than initial %s", FormatDuration(b.Max), FormatDuration(b.Initial)), "")
		}
	}
}
