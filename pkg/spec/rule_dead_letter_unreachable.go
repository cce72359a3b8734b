package spec

import "fmt"

func checkDeadLetterUnreachable(s *Spec, report report) {
	for q := range s.ofType(Classic) {
		if q.DeadLetter != "" && q.MaxAttempts == 0 && q.sound("max_attempts") {
			report(q.At("dead_letter"), fmt.Sprintf("queue %q has dead_letter but no max_attempts: nothing would ever reach %q", q.shown(), q.as("dead_letter", q.DeadLetter)),
				"add max_attempts; for dropped and expired messages use dead_letter_exchange")
		}
	}
}
