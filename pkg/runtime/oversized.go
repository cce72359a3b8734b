package runtime

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// endOversized ends a delivery whose body is larger than its queue takes. No hook
// sees it.
func (c *consumer) endOversized(st stages, d *delivery) {
	if d.sub.err() != nil {
		c.lose() // the broker redelivers it
		return
	}
	p := c.q.Policy
	o := hooks.Outcome{Verdict: hooks.Drop, Reason: fmt.Sprintf("the body has %d bytes, and max_body is %d", len(d.Body), p.MaxBody)}
	facts := settle.Facts{Attempt: d.reading.Attempt, Counted: d.reading.Counted, Redelivered: d.Redelivered}
	steps := settle.DecideOversized(p)
	c.log.Warn("the body is larger than max_body; the message ends without its handler", logkey.MessageID, d.MessageId,
		logkey.Bytes, len(d.Body), logkey.Next, next(facts, steps, p))
	c.execute(st, d, o, steps)
}
