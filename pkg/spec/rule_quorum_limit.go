package spec

import (
	"fmt"
	"math"
)

// A quorum queue gives up a message that came back too often: past its own limit,
// or on RabbitMQ 4 after 20 returns. Without a dead-letter route nobody sees it go.
func checkQuorumLimit(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		if q.External || q.MaxAttempts > 0 || q.DeadLetter != "" || !q.sound("max_attempts", "dead_letter", "arguments", "external", "dead_letter_exchange") {
			continue
		}
		limit, given := q.DeliveryLimit()
		_, named := q.Arguments[argumentLimit]
		switch {
		case named && !given: // of the wrong type, which argument-type reports
		case !given && q.DeadLetterExchange != nil:
			report(q.Pos, fmt.Sprintf("quorum queue %q has no limit of its own: RabbitMQ 4 moves a message to its dead-letter exchange after 20 returns, 3.x never does", q.shown()),
				"write the limit down, so that every server has the same: arguments: {x-delivery-limit: 20}")
		case !given:
			report(q.Pos, fmt.Sprintf("quorum queue %q has no max_attempts: RabbitMQ 4 drops a message after 20 returns", q.shown()),
				"add max_attempts and dead_letter")
		case limit >= 0 && q.DeadLetterExchange == nil:
			report(q.At("arguments."+argumentLimit), fmt.Sprintf("quorum queue %q has x-delivery-limit and no dead-letter route: the server drops a message %s", q.shown(), afterReturns(limit)),
				fmt.Sprintf("write max_attempts: %d and dead_letter in place of the argument, or add dead_letter_exchange", min(limit, math.MaxInt32)+1))
		}
	}
}

func afterReturns(n int64) string {
	switch n {
	case 0:
		return "at its first return"
	case 1:
		return "after 1 return"
	}
	return fmt.Sprintf("after %d returns", n)
}
