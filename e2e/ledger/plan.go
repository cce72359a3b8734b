package ledger

import (
	"fmt"
	"strings"
	"time"
)

// The outcomes in the file.
const (
	Ack   = "ack"
	Retry = "retry"
	After = "after" // a delayed retry
)

// Hopeless is the number of failures of a message that is never acked.
const Hopeless = 1_000_000

// A Plan is the body of a message: it tells the hook what to answer, so that
// hooks need no memory and a message behaves the same in every process.
type Plan struct {
	Outcome string        // of the first attempts
	Times   int           // how many attempts; all later ones ack
	Delay   time.Duration // with After
}

// String is the body: three words.
func (p Plan) String() string { return fmt.Sprintf("%s %d %s\n", p.Outcome, p.Times, p.Delay) }

// ParsePlan reads a body.
func ParsePlan(body string) (Plan, error) {
	var p Plan
	var delay string
	if _, err := fmt.Sscan(strings.TrimSpace(body), &p.Outcome, &p.Times, &delay); err != nil {
		return p, fmt.Errorf("body %q is no plan: %w", body, err)
	}
	var err error
	p.Delay, err = time.ParseDuration(delay)
	return p, err
}

// Answer is the outcome of an attempt.
func (p Plan) Answer(attempt int) string {
	if attempt <= p.Times {
		return p.Outcome
	}
	return Ack
}

// Mix returns the plan of message i of a load in which six of ten messages
// succeed at once, three after failures, and one of twenty never. Without
// delays every failure is a plain retry.
func Mix(i int, delays Delays) Plan {
	kind, p := i%20, Plan{Outcome: Ack}
	switch {
	case kind == 0:
		p = Plan{Outcome: Retry, Times: Hopeless}
	case kind <= 3:
		p = Plan{Outcome: Retry, Times: 1 + kind%2}
	case kind <= 6:
		p = Plan{Outcome: After, Times: 1, Delay: time.Duration(100+100*(i%5)) * time.Millisecond}
	}
	if p.Outcome == After && delays == Plain {
		p = Plan{Outcome: Retry, Times: 1}
	}
	return p
}

// Delays says whether a load asks for delayed retries.
type Delays int

// Plain has retries at once only, Delayed both kinds.
const (
	Plain Delays = iota
	Delayed
)

// Healthy returns the plan of a message that always succeeds.
func Healthy(int) Plan { return Plan{Outcome: Ack} }
