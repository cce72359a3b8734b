package cli

import (
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// finding is one line of a report, whatever it came from: a problem of the
// spec, an object on the broker or a hook. Its JSON form is part of the
// interface; fields are only ever added.
type finding struct {
	Kind   string `json:"kind"` // spec, exchange, queue, binding or handler
	Name   string `json:"name"` // the object; for a handler its queue; for the spec its rule
	Role   string `json:"role,omitempty"`
	State  string `json:"state"` // as broker.State; error or warning for the spec
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// level sorts states by what they mean for the answer.
type level int

const (
	levelOK level = iota
	levelNote
	levelWarning
	levelError
)

func (f finding) level() level {
	switch broker.State(f.State) {
	case broker.OK, broker.Created:
		return levelOK
	case broker.NotVerified:
		return levelNote
	case broker.Warned:
		return levelWarning
	}
	return levelError
}

// rule is a stable id of what went wrong, for code scanning.
func (f finding) rule() string {
	if f.Kind == "spec" {
		return f.Name
	}
	return f.Kind + "-" + hyphens(f.State)
}

func hyphens(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c == ' ' {
			out[i] = '-'
		}
	}
	return string(out)
}

// title names the object in words: queue "orders".
func (f finding) title() string {
	if f.Kind == "spec" {
		return "spec rule " + f.Name
	}
	return f.Kind + " " + quote(f.Name)
}

// message is the one line a person reads in another tool.
func (f finding) message() string {
	if f.Kind == "spec" {
		return oneLine(f.Detail)
	}
	text := f.title() + ": " + f.State
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return oneLine(text)
}

func fromProblems(problems spec.Problems) []finding {
	out := make([]finding, 0, len(problems))
	for _, p := range problems {
		out = append(out, finding{
			Kind: "spec", Name: p.Rule, State: p.Severity.String(), Detail: p.Message, Hint: p.Hint,
			File: p.File, Line: p.Pos.Line, Column: p.Pos.Col,
		})
	}
	return out
}

func fromReport(file string, r *broker.Report) []finding {
	if r == nil {
		return nil
	}
	out := make([]finding, 0, len(r.Findings))
	for _, f := range r.Findings {
		out = append(out, finding{
			Kind: f.Kind, Name: f.Name, Role: string(f.Origin.Role), State: string(f.State),
			Detail: f.Detail, Hint: f.Hint,
			File: file, Line: f.Origin.Pos.Line, Column: f.Origin.Pos.Col,
		})
	}
	return out
}

// tally counts findings by state for the summary and for JSON.
func tally(findings []finding) map[string]int {
	out := map[string]int{}
	for _, f := range findings {
		out[f.State]++
	}
	return out
}

// failed reports whether one of them makes the answer no.
func failed(findings []finding) bool {
	for _, f := range findings {
		if f.level() == levelError {
			return true
		}
	}
	return false
}
