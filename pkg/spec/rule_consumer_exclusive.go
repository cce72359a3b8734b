package spec

import "fmt"

// The server refuses an exclusive consumer on a queue with a single active
// consumer (403).
func checkConsumerExclusive(s *Spec, report report) {
	for i := range s.Queues {
		if q := &s.Queues[i]; q.Consumer.Exclusive && q.Consumer.SingleActive {
			report(q.At("consumer"), fmt.Sprintf("queue %q asks for a consumer that is both exclusive and single_active", q.shown()),
				"keep single_active: others wait and take over; with exclusive they are refused")
		}
	}
}
