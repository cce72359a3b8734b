package cli

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/spec"
)

func printProblems(c console, problems spec.Problems) {
	for _, p := range problems {
		c.println(problemText(c, p))
	}
}

// problemText is Problem.String with the severity in colour.
func problemText(c console, p spec.Problem) string {
	col := red
	if p.Severity == spec.Warning {
		col = yellow
	}
	text := p.File
	if p.Pos != (spec.Pos{}) {
		text += fmt.Sprintf(":%d:%d", p.Pos.Line, p.Pos.Col)
	}
	text = c.paint(bold, safe(text)+":") + " " + c.paint(col, p.Severity.String()+":") +
		" " + safe(p.Message) + c.paint(dim, " ["+p.Rule+"]")
	if p.Hint != "" {
		text += "\n  hint: " + safe(p.Hint)
	}
	return text
}

// summary is the one line that says how a file did.
func summary(path string, s *spec.Spec, problems spec.Problems) string {
	if path == "-" {
		path = stdinName
	}
	errs, warns := count(problems)
	switch {
	case errs > 0 && warns > 0:
		return fmt.Sprintf("%s: %s, %s", path, plural(errs, "error"), plural(warns, "warning"))
	case errs > 0:
		return fmt.Sprintf("%s: %s", path, plural(errs, "error"))
	case warns > 0:
		return fmt.Sprintf("%s: %s, ok with %s", path, plural(len(s.Queues), "queue"), plural(warns, "warning"))
	}
	return fmt.Sprintf("%s: %s, ok", path, plural(len(s.Queues), "queue"))
}

func count(problems spec.Problems) (errs, warns int) {
	for _, p := range problems {
		if p.Severity == spec.Error {
			errs++
		} else {
			warns++
		}
	}
	return errs, warns
}

// stdinName is how messages call a spec that came from standard input.
const stdinName = "<stdin>"
