package spec

import "fmt"

// On a quorum queue max_attempts becomes x-delivery-limit and dead_letter the
// dead-letter route. A limit without a route drops the message at the limit.
func checkQuorumPair(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if !q.sound("max_attempts", "dead_letter") {
			continue
		}
		switch {
		case q.MaxAttempts > 0 && q.DeadLetter == "":
			report(q.At("max_attempts"), fmt.Sprintf("queue %q has max_attempts but no dead_letter: the server would drop a spent message", q.shown()),
				"name a queue for spent messages: dead_letter: "+q.shown()+".dead")
		case q.MaxAttempts == 0 && q.DeadLetter != "":
			report(q.At("dead_letter"), fmt.Sprintf("queue %q has dead_letter but no max_attempts: on a quorum queue the two belong together", q.shown()),
				"add max_attempts, for example max_attempts: 5")
		}
	}
}
