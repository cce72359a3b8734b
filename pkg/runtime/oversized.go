package runtime

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// endOversized ends a delivery whose body is larger than its queue takes. No hook
// sees it.
func (s *settlement) endOversized() {
	if s.d.sub.err() != nil {
		s.lose() // the broker redelivers it
		return
	}
	p := s.q.Policy
	s.o = hooks.Outcome{Verdict: hooks.Drop, Reason: fmt.Sprintf("the body has %d bytes, and max_body is %d", len(s.d.Body), p.MaxBody)}
	facts := settle.Facts{Attempt: s.d.reading.Attempt, Counted: s.d.reading.Counted, Redelivered: s.d.Redelivered}
	steps := settle.DecideOversized(p)
	s.log.Warn("the body is larger than max_body; the message ends without its handler", logkey.MessageID, s.d.MessageId,
		logkey.Bytes, len(s.d.Body), logkey.Next, describeNext(facts, steps, p))
	s.execute(steps)
}
