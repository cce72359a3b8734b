package message

import (
	"slices"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// MaxBatchAnswer bounds the answer to a batch, of whatever kind.
const MaxBatchAnswer = 1 << 20

// ForAll is one outcome as the answer to a batch of n messages.
func ForAll(o hooks.Outcome, n int) []hooks.Outcome { return slices.Repeat([]hooks.Outcome{o}, n) }

// BatchSize guesses how long messages are in a payload, large bodies aside, so
// that a large batch is not copied while it grows.
func BatchSize(ms []hooks.Message) int {
	n := 0
	for i := range ms {
		n += 512
		if size := len(ms[i].Body); size <= largeBody {
			n += size + size/8
		}
	}
	return n
}

// BatchAnswer reads the answer to a batch of n messages from a JSON object: the
// one of a worker, whose id is not looked at.
func BatchAnswer(text []byte, n int) []hooks.Outcome {
	fields, err := members(text)
	if err != nil {
		return ForAll(hooks.Outcome{Reason: JoinReason("malformed answer: no JSON object", Printable(string(text[:min(len(text), 256)]), 256))}, n)
	}
	a, err := decodeFields(fields)
	if err != nil {
		return ForAll(hooks.Outcome{Reason: "malformed answer: it " + err.Error()}, n)
	}
	if a.hasEach && a.problem == nil && len(a.outcome) == 0 {
		return hooks.Spread(a.each, n)
	}
	return ForAll(a.settled(), n)
}
