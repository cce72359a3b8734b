package spec

import "fmt"

func checkUniqueQueue(s *Spec, report report) {
	first := map[string]Pos{}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Name == "" {
			continue
		}
		if at, dup := first[q.Name]; dup {
			report(q.Pos, fmt.Sprintf("queue %q is already defined at line %d", q.shown(), at.Line), "rename one of them, or merge the two")
			continue
		}
		first[q.Name] = q.Pos
	}
}
