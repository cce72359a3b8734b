package spec

import "fmt"

// Who moves spent messages is a question on a quorum queue with a cap only. What
// defaults say is taken where it has a meaning.
func checkDeadLetterBy(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		at, written := q.Keys["dead_letter_by"]
		if !written || !q.sound("dead_letter_by", "type", "max_attempts", "dead_letter") {
			continue
		}
		switch {
		case q.Type == Classic && q.DeadLetterBy == DeadLetterByServer:
			report(at, fmt.Sprintf("queue %q is a classic queue, whose server counts no attempts: rsctl moves its spent messages", q.shown()),
				"remove dead_letter_by, or use type: quorum")
		case q.Type == Quorum && q.MaxAttempts == 0 && q.DeadLetter == "":
			report(at, fmt.Sprintf("queue %q has dead_letter_by but no dead_letter: no message is ever spent", q.shown()),
				"add max_attempts and dead_letter, or remove dead_letter_by")
		}
	}
}
