package spec

import (
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

// rules run in this order; their output is sorted by position afterwards.
var rules = []rule{}

func (p *parser) check(s *Spec) {
	for _, r := range rules {
		r.check(s, func(at Pos, message, hint string) {
			p.add(Problem{Pos: at, Severity: r.severity, Rule: r.id, Message: message, Hint: hint})
		})
	}
}

// sound reports whether none of the keys has a refused value.
func (q *Queue) sound(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return q.bad[k] })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
