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

// refusal is one reason why run cannot start, with its place in the spec.
type refusal struct {
	at   spec.Pos
	text string
}

// runnable answers no when a queue needs what run does not do, naming every
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
		for _, r := range refusals(s, q) {
			lines = append(lines, fmt.Sprintf("%s:%d:%d: queue %q: %s", s.File, r.at.Line, r.at.Col, q.Name, r.text))
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

func refusals(s *spec.Spec, q *spec.Queue) []refusal {
	if q.Handler == nil {
		return []refusal{{q.Pos, "has no handler, so run cannot consume it"}}
	}
	if q.Type == spec.Quorum {
		return pairRefusals(s, q)
	}
	return nil
}

// pairRefusals holds the rule that a quorum queue's limit is the server's: it
// needs somewhere to send the spent message, and reaches the queue only when
// this spec declares it.
func pairRefusals(s *spec.Spec, q *spec.Queue) []refusal {
	limit, dead := q.MaxAttempts > 0, q.DeadLetter != ""
	switch {
	case limit && !dead:
		return []refusal{{q.At("max_attempts"), "max_attempts without dead_letter on a quorum queue would drop spent messages"}}
	case dead && !limit:
		return []refusal{{q.At("dead_letter"), "dead_letter without max_attempts: nothing would ever reach it"}}
	case limit && q.External:
		return []refusal{{q.At("max_attempts"), "max_attempts on an external quorum queue has no effect: the limit is an argument of its declaration"}}
	case limit && !s.DeclareTopology:
		return []refusal{{q.At("max_attempts"), `max_attempts on a quorum queue needs "declare_topology: true": the limit is an argument of the queue's declaration`}}
	}
	return nil
}
