package runtime

import (
	"context"
	"log/slog"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// settle executes what package settle decides, once a reply is out.
func (s *settlement) settle() {
	if !s.reply() {
		return
	}
	facts := factsOf(s.d)
	steps := settle.Decide(facts, s.o, s.q.Policy)
	s.report(facts, steps)
	s.execute(steps)
}

// report logs a failed attempt, once, with what becomes of the message.
func (s *settlement) report(f settle.Facts, steps []settle.Step) {
	if s.o.Verdict == hooks.Ack && !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return // of every message that goes well
	}
	attrs := []any{logkey.MessageID, s.d.MessageId, logkey.Attempt, s.d.reading.Attempt, logkey.Outcome, s.o.Verdict.String()}
	if s.o.Verdict == hooks.Ack {
		s.log.Debug("acked", attrs...)
		return
	}
	if s.o.Reason != "" {
		attrs = append(attrs, logkey.Reason, s.o.Reason)
	}
	if s.d.Redelivered {
		attrs = append(attrs, logkey.Redelivered, true)
	}
	s.log.Warn("handler failed", append(attrs, logkey.Next, describeNext(f, steps, s.q.Policy))...)
}

// describeNext says in a few words what the steps do to the message.
func describeNext(f settle.Facts, steps []settle.Step, p settle.Policy) string {
	words := settle.Consequence(f, steps, p)
	for _, s := range steps {
		switch s := s.(type) {
		case settle.Copy:
			if s.Purpose == settle.ForDelay {
				return words + ", after " + max(s.To.Expiration, s.To.XDelay).String()
			}
		case settle.Later:
			return words + ", after " + s.After.String()
		case settle.Wait:
			return words + ", after " + s.For.String()
		}
	}
	return words
}
