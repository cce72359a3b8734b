package cli

import (
	"cmp"
	"fmt"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// outcomes is the queue's settlement table, each row with what becomes of the
// message: frames alone do not tell where the server takes it.
func outcomes(q *spec.Queue) []outcomeJSON {
	p := topology.Policy(q)
	var out []outcomeJSON
	for _, r := range settle.Table(p) {
		out = append(out, outcomeJSON{r.Outcome, r.When, effect(q, p, r), described(r.Steps)})
	}
	return out
}

// failures is what ends a delivery of the queue when its handler is not to blame;
// without a handler nothing does.
func failures(q *spec.Queue) []failureJSON {
	out := []failureJSON{}
	if q.Handler == nil {
		return out
	}
	for _, r := range settle.FailureTable(topology.Policy(q)) {
		if r.Failure != settle.ReplyUnconfirmed || q.Handler.Reply {
			out = append(out, failureJSON{r.Failure.String(), r.When, r.Then, described(r.Steps)})
		}
	}
	return out
}

func described(steps []settle.Step) []string {
	var texts []string
	for _, s := range steps {
		texts = append(texts, settle.Describe(s))
	}
	return texts
}

// effect says where a message is after a row of the table.
func effect(q *spec.Queue, p settle.Policy, r settle.Row) string {
	for _, s := range r.Steps {
		switch s := s.(type) {
		case settle.Copy:
			return copyEffect(s)
		case settle.Later:
			return "waits " + short(s.After) + " in the process"
		case settle.Wait:
			return "held " + short(s.For) + ", then again"
		}
	}
	switch s := r.Steps[len(r.Steps)-1].(type) {
	case settle.Reject:
		return rejectEffect(q, p, r.Facts, s)
	default:
		return "done"
	}
}

func copyEffect(c settle.Copy) string {
	switch {
	case c.Purpose == settle.ForDeadLetter:
		return "to " + quote(c.To.Queue)
	case c.Purpose == settle.ForRetry:
		return "to the back of " + quote(c.To.Queue)
	case c.To.Queue != "":
		return "waits in " + quote(c.To.Queue)
	}
	return fmt.Sprintf("waits in exchange %q", c.To.Exchange)
}

// rejectEffect follows the routes that the server takes: its own limit, the
// pair of a quorum queue, the queue's dead-letter exchange.
func rejectEffect(q *spec.Queue, p settle.Policy, f settle.Facts, r settle.Reject) string {
	serverLimit := q.Type == spec.Quorum && q.DeadLetter != ""
	spent := p.MaxAttempts > 0 && f.Attempt >= p.MaxAttempts
	switch {
	case r.Requeue && serverLimit && spent:
		return fmt.Sprintf("to %q, by the server", q.DeadLetter)
	case r.Requeue && p.PastLimit(f):
		return "given up by the server: " + cmp.Or(ownRoute(q), "dropped")
	case r.Requeue && p.PastDefault(f):
		return "RabbitMQ 4 gives it up: " + cmp.Or(ownRoute(q), "dropped")
	case r.Requeue:
		return "again"
	case serverLimit:
		return fmt.Sprintf("to %q", q.DeadLetter)
	}
	return cmp.Or(ownRoute(q), "discarded")
}

// ownRoute is where the queue's own dead-letter route takes a message; "" when it
// has none.
func ownRoute(q *spec.Queue) string {
	switch {
	case q.DeadLetterExchange == nil:
		return ""
	case *q.DeadLetterExchange == "" && q.DeadLetterRoutingKey != nil:
		return fmt.Sprintf("to %q", *q.DeadLetterRoutingKey)
	}
	return fmt.Sprintf("to exchange %q", *q.DeadLetterExchange)
}
