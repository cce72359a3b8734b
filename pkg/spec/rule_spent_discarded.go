package spec

import "fmt"

func checkSpentDiscarded(s *Spec, report report) {
	for q := range s.ofType(Classic) {
		if q.MaxAttempts > 0 && q.DeadLetter == "" && q.DeadLetterExchange == nil && q.sound("max_attempts", "dead_letter", "dead_letter_exchange") {
			report(q.At("max_attempts"), fmt.Sprintf("queue %q has max_attempts but no dead_letter: a spent message is discarded", q.shown()),
				"name a queue for spent messages: dead_letter: "+q.shown()+".dead")
		}
	}
}
