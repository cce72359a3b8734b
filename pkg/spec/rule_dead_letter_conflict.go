package spec

import "fmt"

func checkDeadLetterConflict(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if q.DeadLetterExchange != nil && q.paired() {
			report(q.At("dead_letter_exchange"),
				fmt.Sprintf("queue %q has both dead_letter_exchange and dead_letter: on a quorum queue both set x-dead-letter-exchange", q.shown()),
				"keep one: with dead_letter, dropped and expired messages go to that queue too")
		}
	}
}
