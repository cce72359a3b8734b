package settle

import "slices"

// FailureRow is one way in which a delivery ends after a failure.
type FailureRow struct {
	Failure Failure
	When    string // "always", or what sets the row apart from its neighbours
	Facts   Facts
	Steps   []Step // Recover(Failure, Facts, the policy)
	Then    string // what becomes of the message, in a few words
}

// String says what has gone wrong, in a few words.
func (e Failure) String() string {
	switch e {
	case Stopped:
		return "the shutdown has ended the handler"
	case CopyOverdue:
		return "a copy has not arrived, and the original can be kept no longer"
	case CopyImpossible:
		return "a copy is too large, or refused for what it is"
	case BareImpossible:
		return "so is one with no header but the original's"
	case DeadLetterMissing:
		return "the dead-letter queue is missing, and the message can be kept no longer"
	case DeathBlocked:
		return "the server would drop the message for its death history"
	case KeepFailed:
		return "the message cannot be put back as a copy"
	case ReplyUnconfirmed:
		return "the reply is not confirmed"
	}
	return "unknown failure"
}

// FailureTable returns every way in which a delivery of p's queue can end after a
// failure. Situations that end a failure in the same way share a row.
func FailureTable(p Policy) []FailureRow {
	var rows []FailureRow
	for _, e := range Failures() {
		if e.concerns(p) {
			rows = append(rows, failureRows(e, p)...)
		}
	}
	return rows
}

// concerns reports whether the failure can befall a delivery of p's queue.
func (e Failure) concerns(p Policy) bool {
	pair := p.Type == Quorum && p.DeadLetter != ""
	switch e {
	case CopyOverdue, CopyImpossible:
		return p.copies()
	case BareImpossible:
		return p.copies() && p.DeadLetter != ""
	case DeadLetterMissing, KeepFailed, DeathBlocked:
		return pair
	}
	return true
}

// copies reports whether any outcome makes a copy.
func (p Policy) copies() bool {
	return slices.ContainsFunc(Table(p), func(r Row) bool {
		return slices.ContainsFunc(r.Steps, func(s Step) bool {
			switch s.(type) {
			case Copy, Later:
				return true
			}
			return false
		})
	})
}

func failureRows(failure Failure, p Policy) []FailureRow {
	var rows []FailureRow
	for _, e := range endings(p, func(f Facts) ([]Step, string) {
		steps := Recover(failure, f, p)
		return steps, afterFailure(f, steps, p)
	}) {
		rows = append(rows, FailureRow{failure, e.when, e.facts, e.steps, e.then})
	}
	return rows
}

// afterFailure is [Consequence] for the steps of Recover.
func afterFailure(f Facts, steps []Step, p Policy) string {
	switch s := steps[0].(type) {
	case HandBack:
		return "back in the queue; before RabbitMQ 4.3 a quorum queue counts it"
	case Copy:
		if s.Purpose == ForRetry && s.Count < f.Attempt {
			return "comes back as the same attempt"
		}
	}
	return Consequence(f, steps, p)
}
