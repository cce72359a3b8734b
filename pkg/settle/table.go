package settle

import (
	"fmt"
	"slices"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// Row is one way in which a delivery of a queue can end.
type Row struct {
	Outcome string // the hook's answer: "ack", "retry_after 30s"
	When    string // "always", or what sets the row apart from its neighbours
	Facts   Facts
	Answer  hooks.Outcome
	Steps   []Step // Decide(Facts, Answer, the policy)
	Then    string // what becomes of the message, in a few words
}

// exampleDelay stands in a table for whatever delay a hook may ask for.
const exampleDelay = 30 * time.Second

// Table returns every way in which a delivery of p's queue can end, outcome by
// outcome, in the order of a delivery's life. Situations that end an outcome in
// the same way share a row.
func Table(p Policy) []Row {
	var rows []Row
	for _, verdict := range []hooks.Verdict{hooks.Ack, hooks.Drop, hooks.Retry, hooks.RetryAfter} {
		answer := hooks.Outcome{Verdict: verdict}
		if verdict == hooks.RetryAfter {
			answer.Delay = delayToShow(p)
		}
		rows = append(rows, outcomeRows(answer, p)...)
	}
	if row, ok := clampedRow(p); ok {
		rows = append(rows, row)
	}
	if row, ok := oversizedRow(p); ok {
		rows = append(rows, row)
	}
	return rows
}

func delayToShow(p Policy) time.Duration {
	if p.Delay != nil && p.Delay.Max > 0 {
		return min(exampleDelay, p.Delay.Max)
	}
	return exampleDelay
}

type situation struct {
	when  string
	facts Facts
	// widen names both this situation and the one before, where they end alike.
	widen string
}

// situations lists what can be so about a delivery that its end depends on.
func situations(p Policy) []situation {
	if p.MaxAttempts == 0 {
		again := Facts{Attempt: 1, Redelivered: true}
		if p.Type == Quorum {
			again.Attempt = 2
		}
		list := []situation{{when: "first delivery", facts: Facts{Attempt: 1}}, {when: "redelivered", facts: again}}
		if n := p.Limit.reached(); p.Type == Quorum && n > 1 {
			list = append(list, situation{when: fmt.Sprintf("after %d returns", n), facts: Facts{Attempt: n + 1, Redelivered: true}})
		}
		return list
	}
	list := belowCap(p)
	n := p.MaxAttempts
	last := fmt.Sprintf("attempt %d", n)
	if p.Type == Classic {
		return append(list, situation{when: last, facts: Facts{Attempt: n, Counted: n - 1}})
	}
	list = append(list, situation{when: last, facts: Facts{Attempt: n, Redelivered: n > 1}})
	if n > 1 && p.Delay != nil && p.Delay.Mode == ModeCopy {
		list = append(list, situation{when: last + ", some of them delayed copies", facts: Facts{Attempt: n, Counted: n - 1}})
	}
	return list
}

// belowCap lists the situations before the last attempt.
func belowCap(p Policy) []situation {
	n := p.MaxAttempts
	if n == 1 {
		return nil
	}
	list := []situation{{when: fmt.Sprintf("before attempt %d", min(n, StormAttempt)), facts: Facts{Attempt: 1}}}
	if n <= StormAttempt {
		return list
	}
	storm := Facts{Attempt: StormAttempt, Redelivered: p.Type == Quorum}
	if p.Type == Classic {
		storm.Counted = StormAttempt - 1
	}
	return append(list, situation{
		when: fmt.Sprintf("attempt %d or later, before attempt %d", StormAttempt, n), facts: storm,
		widen: fmt.Sprintf("before attempt %d", n),
	})
}

// outcomeRows has one row for each situation that ends in a way of its own.
func outcomeRows(answer hooks.Outcome, p Policy) []Row {
	var rows []Row
	for _, e := range endings(p, func(f Facts) ([]Step, string) {
		steps := Decide(f, answer, p)
		return steps, Consequence(f, steps, p)
	}) {
		rows = append(rows, Row{nameOf(answer), e.when, e.facts, answer, e.steps, e.then})
	}
	return rows
}

// ending is how a delivery ends in one situation, or in several that end alike.
type ending struct {
	when  string
	facts Facts
	steps []Step
	then  string
}

// endings has one ending for each situation that ends in a way of its own.
func endings(p Policy, end func(Facts) (steps []Step, then string)) []ending {
	var list []ending
	for _, s := range situations(p) {
		steps, then := end(s.facts)
		e := ending{s.when, s.facts, steps, then}
		switch i := slices.IndexFunc(list, e.like); {
		case i < 0:
			list = append(list, e)
		case s.widen != "":
			list[i].when = s.widen
		}
	}
	if len(list) == 1 {
		list[0].when = "always"
	}
	return list
}

func (e ending) like(o ending) bool {
	return e.then == o.then && slices.EqualFunc(e.steps, o.steps, sameKind)
}

// clampedRow shows a delay beyond what the strategy can hold.
func clampedRow(p Policy) (Row, bool) {
	if p.Delay == nil || p.Delay.Max <= 0 || p.MaxAttempts == 1 {
		return Row{}, false
	}
	answer := hooks.Outcome{Verdict: hooks.RetryAfter, Delay: p.Delay.Max + 1}
	facts := Facts{Attempt: 1}
	when := "more than " + inWords(p.Delay.Max)
	steps := Decide(facts, answer, p)
	return Row{"retry_after", when, facts, answer, steps, Consequence(facts, steps, p)}, true
}

// oversizedRow shows a body that no hook gets.
func oversizedRow(p Policy) (Row, bool) {
	if p.MaxBody == 0 {
		return Row{}, false
	}
	facts, steps := Facts{Attempt: 1}, DecideOversized(p)
	return Row{"none", "a body over max_body", facts, hooks.Outcome{Verdict: hooks.Drop}, steps, Consequence(facts, steps, p)}, true
}

// Consequence says in a few words what the steps, decided from f and p, lead to; docs,
// rsctl explain and the log use the same words.
func Consequence(f Facts, steps []Step, p Policy) string {
	for _, s := range steps {
		switch s := s.(type) {
		case Later:
			return "comes back as the next attempt, unless the process dies first"
		case Copy:
			if s.Purpose == ForDeadLetter {
				return "ends in " + s.To.Queue
			}
			return "comes back as the next attempt"
		}
	}
	if reject, ok := steps[len(steps)-1].(Reject); ok {
		return afterReject(reject, f, p)
	}
	return "done"
}

func afterReject(r Reject, f Facts, p Policy) string {
	pair := p.Type == Quorum && p.MaxAttempts > 0 && p.DeadLetter != ""
	switch {
	case pair && !r.Requeue:
		return "the server dead-letters it to " + p.DeadLetter
	case !r.Requeue:
		return "goes to the dead-letter route of the queue if it has one, else it is gone"
	case pair && f.Attempt >= p.MaxAttempts:
		return "past its limit, the server dead-letters it to " + p.DeadLetter
	case p.Type == Quorum:
		return p.afterReturn(f)
	}
	return "back in the queue, not counted"
}

func nameOf(o hooks.Outcome) string {
	if o.Verdict == hooks.RetryAfter {
		return o.Verdict.String() + " " + inWords(o.Delay)
	}
	return o.Verdict.String()
}

// sameKind reports whether two steps differ in numbers only: the count and the
// delay change from attempt to attempt.
func sameKind(a, b Step) bool {
	switch x := a.(type) {
	case Copy:
		y, ok := b.(Copy)
		return ok && x.Purpose == y.Purpose
	case Later:
		_, ok := b.(Later)
		return ok
	case Wait:
		_, ok := b.(Wait)
		return ok
	}
	return a == b
}
