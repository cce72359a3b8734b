package spec

import "fmt"

// From RabbitMQ 4.0 on a quorum queue without a limit of its own has one of 20
// returns, after which the message is dropped.
func checkQuorumLimit(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		_, limited := q.Arguments["x-delivery-limit"]
		if limited || q.External || q.MaxAttempts > 0 || q.DeadLetter != "" || !q.sound("max_attempts", "dead_letter", "arguments", "external") {
			continue
		}
		report(q.Pos, fmt.Sprintf("quorum queue %q has no max_attempts: RabbitMQ 4 drops a message after 20 returns", q.shown()),
			"add max_attempts and dead_letter, or arguments: {x-delivery-limit: -1} on RabbitMQ 4 (on 3.x -1 means drop at once)")
	}
}
