package runtime

import (
	"github.com/rsctl/rsctl/pkg/frames"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// endUnreadable ends a delivery by what needs no headers: by the queue's
// dead-letter route, which takes the original as it is, or else by a copy without
// headers in the dead-letter queue. Without either it stays unsettled.
func (s *settlement) endUnreadable(mark frames.Mark) {
	p := s.q.Policy
	switch {
	case s.d.sub.err() != nil || s.st.stopping():
		s.from.endUnseen(s.d)
	case s.q.DeadLetterRoute && (!mark.Died || p.DeadLetter == ""):
		s.rejectUnreadable()
	case p.DeadLetter != "":
		s.copyUnreadable()
	default:
		s.park()
	}
}

func (s *settlement) reportUnreadable(next string) {
	s.log.Error("a message cannot be read; no handler sees it", logkey.MessageID, s.d.MessageId, logkey.Exchange, s.d.Exchange,
		logkey.RoutingKey, s.d.RoutingKey, logkey.Bytes, len(s.d.Body), logkey.Reason, s.o.Reason, logkey.Next, next)
}

// rejectUnreadable leaves the message to the server, once it can be trusted to
// dead-letter it.
func (s *settlement) rejectUnreadable() {
	defer s.goOn()
	for s.deadLetters(settle.Reject{}) && s.d.sub.err() == nil && s.dead.missing(s.d.sub.session.conn) {
		if !s.again(s.q.Policy.DeadLetter, errNoDeadLetterQueue) {
			s.from.endUnseen(s.d)
			return
		}
	}
	s.reportUnreadable("rejected to the queue's dead-letter route, whole")
	s.finish(settle.Reject{})
}

// copyUnreadable puts the body and the properties into the dead-letter queue.
func (s *settlement) copyUnreadable() {
	p := s.q.Policy
	toDeadLetters := settle.Copy{To: settle.Target{Key: p.DeadLetter, Queue: p.DeadLetter}, Purpose: settle.ForDeadLetter, Reason: settle.ReasonUnreadable}
	if p.Type == settle.Classic {
		toDeadLetters.To.Exchange = p.RetryExchange
	}
	defer s.goOn()
	switch err := s.arrive(s.outgoing(toDeadLetters)); {
	case err == nil:
		s.reportUnreadable("a copy without its headers is in the dead-letter queue")
		s.finish(p.AfterCopy())
	case hopeless(err):
		s.park()
	default:
		s.from.endUnseen(s.d)
	}
}

// park keeps a message that has nowhere to go. At the end it goes back to its
// queue.
func (s *settlement) park() {
	s.reportUnreadable("kept in its queue, which has no dead-letter route: " +
		"give it a dead_letter, or take the message out with a client that reads such headers")
	s.from.keepAside(s.st, s.d)
	s.from.endUnseen(s.d)
}
