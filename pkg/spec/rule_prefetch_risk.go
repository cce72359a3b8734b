package spec

import "fmt"

const (
	farAbove    = 10 // times what runs at a time
	fewAttempts = 3
)

// A process that dies costs everything it had prefetched from a quorum queue an
// attempt. What comes back then runs one at a time, but with a single active
// consumer, and a process that is killed for another reason costs the next ones.
func checkPrefetchRisk(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if q.MaxAttempts == 0 || q.MaxAttempts > fewAttempts || q.Handler == nil || !q.sound("prefetch", "concurrency", "batch", "max_attempts") {
			continue
		}
		runs := int64(q.Concurrency)
		if q.Batch != nil {
			runs *= int64(q.Batch.Size)
		}
		if int64(q.Prefetch) > farAbove*runs {
			report(q.At("prefetch"), fmt.Sprintf("prefetch %d is far above what runs at a time (%d), and max_attempts is %d: a process that dies costs every prefetched message of a quorum queue an attempt", q.Prefetch, runs, q.MaxAttempts),
				"leave prefetch out, or raise max_attempts")
		}
	}
}
