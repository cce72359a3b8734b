package runtime

import (
	"errors"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// deadLetters reports whether a settlement makes the server dead-letter.
func (s *settlement) deadLetters(step settle.Step) bool {
	p := s.q.Policy
	reject, ok := step.(settle.Reject)
	if !ok || p.Type != settle.Quorum || p.DeadLetter == "" || p.MaxAttempts == 0 {
		return false
	}
	return !reject.Requeue || s.d.reading.Attempt >= p.MaxAttempts
}

// safeToDie returns when the server can be trusted to dead-letter a delivery. It
// reports false when the delivery has ended in another way.
func (s *settlement) safeToDie() bool {
	if message.BlocksDeath(s.d.Headers, s.q.Policy.DeadLetter) {
		if err := s.recover(settle.DeathBlocked); err != nil {
			s.overdue(settle.DeadLetterMissing, err)
		}
		return false
	}
	for s.d.sub.err() == nil && s.dead.missing(s.d.sub.session.conn) {
		if !s.again(s.q.Policy.DeadLetter, errNoDeadLetterQueue) {
			s.overdue(settle.DeadLetterMissing, errNoDeadLetterQueue)
			return false
		}
	}
	return true
}

var errNoDeadLetterQueue = errors.New("the dead-letter queue does not exist")
