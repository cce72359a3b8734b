package kinds

import (
	"slices"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// maxBatchAnswer bounds the answer to a batch, of whatever kind.
const maxBatchAnswer = 1 << 20

// forAll is one outcome as the answer to a batch of n messages.
func forAll(o hooks.Outcome, n int) []hooks.Outcome { return slices.Repeat([]hooks.Outcome{o}, n) }

// batchSize guesses how long messages are in a payload, large bodies aside, so
// that a large batch is not copied while it grows.
func batchSize(ms []hooks.Message) int {
	n := 0
	for i := range ms {
		n += 512
		if size := len(ms[i].Body); size <= largeBody {
			n += size + size/8
		}
	}
	return n
}

// batchAnswer reads the answer to a batch of n messages from a JSON object: the
// one of a worker, whose id is not looked at.
func batchAnswer(text []byte, n int) []hooks.Outcome {
	fields, err := members(text)
	if err != nil {
		return forAll(hooks.Outcome{Reason: joinReason("malformed answer: no JSON object", printable(string(text[:min(len(text), 256)]), 256))}, n)
	}
	a, err := decodeFields(fields)
	if err != nil {
		return forAll(hooks.Outcome{Reason: "malformed answer: it " + err.Error()}, n)
	}
	if a.hasEach && a.problem == nil && len(a.outcome) == 0 {
		return hooks.Spread(a.each, n)
	}
	return forAll(a.settled(), n)
}
