package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in the file; both count from 1. The zero Pos is the file as a
// whole.
type Pos struct{ Line, Col int }

// Severity says whether a problem stops the spec from being used.
type Severity int

// An Error stops every command; a Warning is printed and the work goes on.
const (
	Error Severity = iota
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// A Problem is one thing wrong with a spec, written for the person who wrote
// the spec: Message says what is wrong, Hint says what to type instead.
type Problem struct {
	File     string
	Pos      Pos
	Severity Severity
	Rule     string // stable id
	Message  string
	Hint     string // may be empty
}

// String renders "file:line:col: error: message [rule]" and, on a line of its
// own, the hint.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Pos != (Pos{}) {
		fmt.Fprintf(&b, ":%d:%d", p.Pos.Line, p.Pos.Col)
	}
	fmt.Fprintf(&b, ": %s: %s [%s]", p.Severity, p.Message, p.Rule)
	if p.Hint != "" {
		b.WriteString("\n  hint: " + p.Hint)
	}
	return b.String()
}

// Problems is everything found in one pass, errors and warnings.
type Problems []Problem

// HasErrors reports whether any of them is an error.
func (ps Problems) HasErrors() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}

// String renders one problem after the other, each ending in a line break.
func (ps Problems) String() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// sort orders by position, and at one place by rule and message, so that one
// file always gives one text.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(comparePos(a.Pos, b.Pos), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
}

func comparePos(a, b Pos) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) }
