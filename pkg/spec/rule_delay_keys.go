package spec

import "fmt"

// What a strategy's keys must be among themselves.
func checkDelayKeys(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		d := q.Delay
		if d == nil || !q.sound("delay") {
			continue
		}
		switch {
		case d.WaitingQueue != "" && len(d.Tiers) > 0:
			report(q.At("delay.tiers"), "waiting_queue and tiers exclude each other: each tier has a waiting queue of its own", "keep one of them")
		case d.Strategy == "native" && (d.Min == 0 || d.Max == 0):
			report(q.At("delay"), "delay native needs min and max: without max the server's back-off is constant", "delay: {strategy: native, min: 1s, max: 1m}")
		case d.Strategy == "native" && d.Min > d.Max:
			report(q.At("delay.max"), fmt.Sprintf("max %s is shorter than min %s", FormatDuration(d.Max), FormatDuration(d.Min)), "")
		}
	}
}
