package spec

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// A rule checks one property of a spec. It reports every violation it finds and
// must not assume that another rule has passed, but it leaves keys alone whose
// value has already been refused.
type rule struct {
	id       string
	severity Severity
	check    func(s *Spec, report report)
}

// report takes one violation of the rule that is running.
type report func(at Pos, message, hint string)

// sound reports whether none of the keys has a refused value.
func (q *Queue) sound(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return q.bad[k] })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ofType yields the queues of one type.
func (s *Spec) ofType(t QueueType) iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		for i := range s.Queues {
			if q := &s.Queues[i]; q.Type == t && q.Name != "" && q.sound("type") && !yield(q) {
				return
			}
		}
	}
}

// paired reports whether q has a cap and a queue for spent messages.
func (q *Queue) paired() bool { return q.MaxAttempts > 0 && q.DeadLetter != "" }

// as returns the text of a key for messages: the name that is used, or ${…} as
// written when it was interpolated.
func (q *Queue) as(key, value string) string {
	if source, ok := q.written[key]; ok {
		return source
	}
	return value
}

// shown is the queue's name for messages. A name that could not be read has a
// problem of its own.
func (q *Queue) shown() string { return cmp.Or(q.as("name", q.Name), "(no name)") }

// shown is the exchange's name for messages.
func (x *Exchange) shown() string {
	if x.written != "" {
		return x.written
	}
	return x.Name
}

// delaysBy returns the key by which the spec itself asks for delayed retries.
// A hook may ask for them on its own account.
func (q *Queue) delaysBy() (string, bool) {
	if q.Backoff != nil {
		return "backoff", true
	}
	if q.Handler == nil {
		return "", false
	}
	for _, r := range append(append([]CodeRule(nil), q.Handler.ExitCodes...), q.Handler.Statuses...) {
		if r.Outcome.Delay > 0 {
			return "handler", true
		}
	}
	return "", false
}
