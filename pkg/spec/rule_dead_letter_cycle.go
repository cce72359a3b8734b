package spec

import (
	"fmt"
	"slices"
	"strings"
)

// A spent message that comes back to a queue it was spent in would be tried for
// ever, or dropped by the server as a dead-letter cycle.
func checkDeadLetterCycle(s *Spec, report report) {
	reported := map[string]bool{}
	for i := range s.Queues {
		q := &s.Queues[i]
		trail := s.deadLetters(q)
		if len(trail) == 0 || reported[q.Name] {
			continue
		}
		for _, name := range trail {
			reported[name] = true
		}
		if len(trail) == 1 {
			report(q.At("dead_letter"), fmt.Sprintf("dead_letter of queue %q is the queue itself", q.Name), "name another queue, for example "+q.Name+".dead")
			continue
		}
		path := strings.Join(append(trail, q.Name), " -> ")
		report(q.At("dead_letter"), "dead letters go round in a circle: "+path, "let the last of them end in a queue without dead_letter")
	}
}

// deadLetters follows dead_letter from q and returns the names up to q again;
// nil when the way ends elsewhere.
func (s *Spec) deadLetters(q *Queue) []string {
	var trail []string
	for at := q; at != nil && at.Name != "" && at.DeadLetter != ""; at = s.Queue(at.DeadLetter) {
		if slices.Contains(trail, at.Name) {
			return nil
		}
		trail = append(trail, at.Name)
		if at.DeadLetter == q.Name {
			return trail
		}
	}
	return nil
}
