package spec

import "fmt"

// The pair reaches a quorum queue as arguments, and arguments reach it only
// when this service declares it.
func checkQuorumDeclare(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if !q.paired() || !q.sound("max_attempts", "dead_letter", "external") {
			continue
		}
		switch {
		case q.External:
			report(q.At("external"), fmt.Sprintf("queue %q is external, so that max_attempts and dead_letter never reach it", q.shown()),
				"let its owner set the delivery limit and the dead-letter route, and remove the pair here")
		case !s.DeclareTopology && !s.badDeclare:
			report(q.At("max_attempts"), fmt.Sprintf("max_attempts and dead_letter of quorum queue %q need declare_topology: true", q.shown()),
				"they become arguments of the queue, which are set when it is declared; add declare_topology: true at the top")
		}
	}
}
