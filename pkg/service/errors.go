package service

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// StartError holds all reasons why a service cannot start, found in one go. Trying
// again does not help: the spec, the topology or a handler has to change.
type StartError struct{ Problems []Problem }

// Error has a line for each problem.
func (e *StartError) Error() string {
	if len(e.Problems) == 1 {
		return "cannot start: " + e.Problems[0].String()
	}
	var b strings.Builder
	b.WriteString("cannot start:")
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Trying again mends neither of them.
var (
	_ runtime.Permanent = (*StartError)(nil)
	_ runtime.Permanent = (*broker.Refusal)(nil)
)

// Permanent says to package runtime that trying again is useless.
func (*StartError) Permanent() bool { return true }

// Hint says what to do about the first problem of which that is known; further hints
// rarely say anything new.
func (e *StartError) Hint() string {
	for _, p := range e.Problems {
		if p.Hint != "" {
			return p.Hint
		}
	}
	return ""
}

// Problem is one reason why a service cannot start.
type Problem struct {
	File    string   // the spec; "": the problem has no place in it
	Pos     spec.Pos // zero: the file as a whole
	Message string   // one line
	Hint    string   // what to do; may be empty
}

// String renders "file:line:col: message".
func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Pos == (spec.Pos{}):
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Pos.Line, p.Pos.Col, p.Message)
}

// problemOf makes a problem of a finding that forbids a start.
func problemOf(file string, f broker.Finding) Problem {
	if f.Origin.Pos == (spec.Pos{}) {
		file = ""
	}
	return Problem{File: file, Pos: f.Origin.Pos, Message: oneLine(f.String()), Hint: f.Hint}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// heldUp holds what concerns only queues that another connection has exclusively.
func heldUp(err error) bool {
	var locked *broker.LockedError
	return errors.As(err, &locked)
}
