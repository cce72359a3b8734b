package cli

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// limitNote says how often the server lets a message of a quorum queue without
// max_attempts come back.
func limitNote(q *spec.Queue, p settle.Policy) string {
	gone := "drops a message"
	if p.OwnRoute {
		gone = "moves a message to the queue's dead-letter exchange"
	}
	silent := ""
	if !p.OwnRoute {
		silent = " Nobody is told, unless a policy gives the queue a dead-letter exchange."
	}
	var text string
	switch returns := p.Limit.Returns; {
	case !p.Limit.Given && q.External:
		return fmt.Sprintf("no cap in the spec. The queue is external: its owner's x-delivery-limit holds; without one RabbitMQ 4.x %s after its default of %d returns, 3.x never does.", gone, settle.DefaultReturns)
	case !p.Limit.Given:
		return fmt.Sprintf("no cap in the spec. RabbitMQ 4.x %s after its default of %d returns, 3.x never does.", gone, settle.DefaultReturns)
	case returns < 0:
		return "no cap: with x-delivery-limit -1 RabbitMQ 4 lets a message come back for ever. RabbitMQ 3.x would drop it at its first return, so that rsctl refuses to consume the queue there."
	case returns == 0:
		text = fmt.Sprintf("1, by x-delivery-limit 0: the server %s at its first return, whether rsctl or a crash returns it.", gone) + silent
	default:
		text = fmt.Sprintf("%d, the first delivery counted, by x-delivery-limit %d: past it the server %s, whether rsctl or a crash returns it.", returns+1, returns, gone) + silent
	}
	if waitsAsCopy(p) {
		text += " A delayed copy starts the server's count anew."
	}
	return text
}
