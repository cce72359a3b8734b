package spec

import "fmt"

// Without a delay a quorum queue has no copy to hold: the delivery is requeued
// at once.
func checkDelayDropped(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if q.Delay != nil || !q.sound("delay", "backoff", "handler") {
			continue
		}
		if key, ok := q.delaysBy(); ok {
			report(q.At(key), fmt.Sprintf("queue %q is a quorum queue without delay: its retries are requeued at once", q.shown()),
				"add delay: hold, levels, or dlx_ttl with tiers")
		}
	}
}
