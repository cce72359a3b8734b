package spec

import (
	"fmt"
	"math"
)

// checkPrefetchMemory looks at queues that say how large their messages may be: all
// that prefetch lets come is in memory at once.
func checkPrefetchMemory(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.MaxBody == 0 || q.Handler == nil || !q.sound("prefetch", "concurrency", "batch", "max_body") || q.MaxBody <= s.MaxInMemory/int64(max(q.Prefetch, 1)) {
			continue
		}
		most := int64(math.MaxInt64)
		if q.MaxBody <= most/int64(q.Prefetch) {
			most = q.MaxBody * int64(q.Prefetch)
		}
		report(q.At("max_body"), fmt.Sprintf("prefetch %d times max_body %s can take %s of memory, more than max_in_memory %s",
			q.Prefetch, FormatSize(q.MaxBody), FormatSize(most), FormatSize(s.MaxInMemory)),
			"lower prefetch, or max_body, or raise max_in_memory if the machine has that much")
	}
}
