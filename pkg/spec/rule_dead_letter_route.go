package spec

import "fmt"

// A dead-letter routing key without an exchange is refused by the server (406).
func checkDeadLetterRoute(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.DeadLetterRoutingKey != nil && q.DeadLetterExchange == nil && q.sound("dead_letter_exchange") {
			report(q.At("dead_letter_routing_key"), fmt.Sprintf("queue %q has dead_letter_routing_key but no dead_letter_exchange", q.shown()),
				`name the exchange; dead_letter_exchange: "" is the default exchange, where the key is a queue's name`)
		}
	}
}
