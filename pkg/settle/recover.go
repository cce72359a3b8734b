package settle

// A Failure keeps a delivery from ending as [Decide] says. The set is closed.
type Failure int

// The failures, of which each has its rows in docs/settlement.md.
const (
	// Stopped is a handler that the shutdown has ended before it could answer.
	Stopped Failure = iota
	// CopyOverdue is a copy that has not arrived (no such queue, full, forbidden,
	// no confirm) for as long as its original may be kept.
	CopyOverdue
	// CopyImpossible is a copy that can never arrive: it is too large, or refused
	// for what it is.
	CopyImpossible
	// BareImpossible is a copy that can never arrive although it has no header but
	// the original's: it is tried after CopyImpossible.
	BareImpossible
	// DeadLetterMissing is a message that the server would drop, because its
	// dead-letter queue does not exist, for as long as it may be kept.
	DeadLetterMissing
	// DeathBlocked is a message that the server would drop because of its death
	// history.
	DeathBlocked
	// KeepFailed is a message that could not be put back as a copy.
	KeepFailed
	// ReplyUnconfirmed is a request whose reply may not have arrived.
	ReplyUnconfirmed
)

// Failures lists every Failure.
func Failures() []Failure {
	return []Failure{Stopped, CopyOverdue, CopyImpossible, BareImpossible, DeadLetterMissing, DeathBlocked, KeepFailed, ReplyUnconfirmed}
}

// Recover returns the steps that end a delivery after a failure. Exactly one of them settles it, and it is the last. A message
// is given up only where nothing else can end it.
func Recover(e Failure, f Facts, p Policy) []Step {
	last := p.MaxAttempts > 0 && f.Attempt >= p.MaxAttempts
	switch e {
	case Stopped, ReplyUnconfirmed:
		return []Step{Reject{Requeue: true}} // the handler runs again; a quorum queue counts the attempt
	case CopyOverdue, DeadLetterMissing:
		if p.Type == Quorum && (last || e == DeadLetterMissing) {
			return putBack(f, p)
		}
		return []Step{Reject{Requeue: true}} // a quorum queue counts the attempt that has failed
	case CopyImpossible:
		if p.DeadLetter != "" {
			c := deadLetterCopy(p, "")
			c.Bare = true
			return []Step{c, p.settleCopied()}
		}
		return uncopied(p)
	case BareImpossible:
		return uncopied(p)
	case DeathBlocked:
		return []Step{deadLetterCopy(p, ""), p.settleCopied()}
	}
	return []Step{HandBack{}}
}

// putBack puts a copy with the same count in the place of a spent message: to
// return it would spend its last attempt.
func putBack(f Facts, p Policy) []Step {
	to := Target{Key: p.Queue, Queue: p.Queue}
	return []Step{Copy{To: to, Purpose: ForRetry, Count: f.Attempt - 1}, Ack{}}
}

// uncopied ends a message that cannot be copied: by the queue's own dead-letter
// route, or back in the queue where the server would else throw it away.
func uncopied(p Policy) []Step {
	if p.OwnRoute || p.Type == Quorum && p.DeadLetter != "" {
		return []Step{Reject{}}
	}
	return []Step{Reject{Requeue: true}}
}
