package spec

import "fmt"

func checkTimerLoses(s *Spec, report report) {
	for q := range s.ofType(Classic) {
		if !q.sound("delay", "backoff", "handler") {
			continue
		}
		key, ok := q.delaysBy()
		if q.Delay != nil {
			key, ok = "delay", q.Delay.Strategy == "timer"
		}
		if ok {
			report(q.At(key), fmt.Sprintf("delayed retries of queue %q wait in the process, and a crash loses them", q.shown()),
				"to keep them on the broker use delay: levels, or dlx_ttl with tiers")
		}
	}
}
