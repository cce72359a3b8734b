package spec

import (
	"fmt"
	"strings"
)

// A spent message that comes back to a queue it was spent in would be tried for
// ever, or dropped by the server as a dead-letter cycle.
func checkDeadLetterCycle(s *Spec, report report) {
	next := map[string]*Queue{}
	for i := range s.Queues {
		next[s.Queues[i].Name] = &s.Queues[i]
	}
	seen := map[*Queue]bool{}
	for i := range s.Queues {
		if cycle := cycleFrom(&s.Queues[i], next, seen); cycle != nil {
			reportCycle(cycle, report)
		}
	}
}

// cycleFrom follows dead_letter from q through queues that no earlier call has
// seen, and returns the cycle it ends in, if any.
func cycleFrom(q *Queue, next map[string]*Queue, seen map[*Queue]bool) []*Queue {
	var trail []*Queue
	place := map[*Queue]int{}
	for q != nil && q.DeadLetter != "" && !seen[q] {
		seen[q] = true
		place[q] = len(trail)
		trail = append(trail, q)
		q = next[q.DeadLetter]
	}
	if start, ok := place[q]; ok {
		return trail[start:]
	}
	return nil
}

func reportCycle(cycle []*Queue, report report) {
	first := cycle[0]
	if len(cycle) == 1 {
		report(first.At("dead_letter"), fmt.Sprintf("dead_letter of queue %q is the queue itself", first.shown()),
			"name another queue, for example "+first.shown()+".dead")
		return
	}
	var path []string
	for _, q := range append(cycle, first) {
		path = append(path, q.shown())
	}
	report(first.At("dead_letter"), "dead letters go round in a circle: "+strings.Join(path, " -> "),
		"let the last of them end in a queue without dead_letter")
}
