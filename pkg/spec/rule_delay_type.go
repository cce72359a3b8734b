package spec

import "fmt"

func checkDelayType(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Delay == nil || !q.sound("delay") {
			continue
		}
		switch {
		case q.Type == Classic && q.Delay.Strategy == "native":
			report(q.At("delay"), fmt.Sprintf("queue %q is classic, and delay native exists on quorum queues only", q.shown()),
				"use levels, or dlx_ttl with tiers")
		case q.Type == Quorum && q.Delay.Strategy == "timer":
			report(q.At("delay"), fmt.Sprintf("queue %q is a quorum queue, which has no copy that a timer could hold", q.shown()),
				"use hold, levels, or dlx_ttl with tiers")
		}
	}
}
