package spec

import "fmt"

// The original of every copy is rejected, and a rejected message goes to the
// queue's own dead-letter exchange.
func checkRetriesDeadLetter(s *Spec, report report) {
	for q := range s.ofType(Classic) {
		copies := q.MaxAttempts > 1 || q.MaxAttempts == 1 && q.DeadLetter != ""
		if copies && q.DeadLetterExchange != nil && q.RetryOriginal == RejectOriginal && q.sound("retry_original", "dead_letter_exchange") {
			report(q.At("dead_letter_exchange"),
				fmt.Sprintf("every retried message of queue %q also goes to its dead-letter exchange %q", q.shown(), q.as("dead_letter_exchange", *q.DeadLetterExchange)),
				"write retry_original: ack if only dropped and expired messages should go there")
		}
	}
}
