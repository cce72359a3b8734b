package cli

import (
	"fmt"
	"strings"

	"github.com/rsctl/rsctl/pkg/spec"
)

// queueHint lists the queues that could have been meant.
func queueHint(names []string) string {
	if len(names) == 0 {
		return ""
	}
	shown := names[:min(8, len(names))]
	hint := "queues: " + strings.Join(shown, ", ")
	if n := len(names) - len(shown); n > 0 {
		hint += fmt.Sprintf(" and %d more", n)
	}
	return hint
}

// runnable answers no when a queue has no handler, or none was asked for, naming every
// place.
func runnable(s *spec.Spec, queues []*spec.Queue) error {
	if len(queues) == 0 {
		return &negative{
			s.File + ": no queue has a handler, so there is nothing to run",
			`give a queue a handler, for example "handler: {exec: [./handle.sh]}"`,
		}
	}
	var lines []string
	for _, q := range queues {
		if q.Handler == nil {
			lines = append(lines, fmt.Sprintf("%s:%d:%d: queue %q: has no handler, so run cannot consume it", s.File, q.Pos.Line, q.Pos.Col, q.Name))
		}
	}
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return &negative{message: lines[0]}
	}
	return &negative{message: "cannot run this spec:\n  " + strings.Join(lines, "\n  ")}
}

// at renders a place in the spec.
func at(file string, p spec.Pos) string {
	if p == (spec.Pos{}) {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Col)
}
