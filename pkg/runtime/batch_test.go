package runtime

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// batchFunc is a hook for batches that is a function.
type batchFunc func(ms []hooks.Message) ([]hooks.Outcome, error)

func (f batchFunc) Handle(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
	return hooks.Outcome{}, errors.New("called without a batch")
}

func (f batchFunc) HandleBatch(_ context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	return f(ms)
}

func ackAll([]hooks.Message) ([]hooks.Outcome, error) {
	return []hooks.Outcome{{Verdict: hooks.Ack}}, nil
}

func TestTheAnswerToABatchHoldsForEachMessage(t *testing.T) {
	t.Parallel()
	ack, drop, retry := hooks.Outcome{Verdict: hooks.Ack}, hooks.Outcome{Verdict: hooks.Drop}, hooks.Outcome{Verdict: hooks.Retry}
	malformed := hooks.Outcome{Reason: "malformed answer: 2 outcomes for 3 messages"}
	broken := hooks.Outcome{Reason: "broken"}
	for _, tt := range []struct {
		name   string
		answer []hooks.Outcome
		err    error
		want   []hooks.Outcome
	}{
		{"one outcome holds for all", []hooks.Outcome{drop}, nil, []hooks.Outcome{drop, drop, drop}},
		{"one for each stands", []hooks.Outcome{ack, retry, drop}, nil, []hooks.Outcome{ack, retry, drop}},
		{"a wrong number fails them all", []hooks.Outcome{ack, ack}, nil, []hooks.Outcome{malformed, malformed, malformed}},
		{"no outcome fails them all", nil, nil, slices.Repeat([]hooks.Outcome{{Reason: "malformed answer: 0 outcomes for 3 messages"}}, 3)},
		{"an error fails them all, whatever comes with it", []hooks.Outcome{ack}, errors.New("broken"), []hooks.Outcome{broken, broken, broken}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, _ := bufferedLog()
			hook := batchFunc(func([]hooks.Message) ([]hooks.Outcome, error) { return tt.answer, tt.err })
			c := newConsumer(Queue{Hook: hook, Concurrency: 1, Prefetch: 3, Batch: Batch{Size: 3}}, shared{log: log})
			ds := []*delivery{unsentDelivery(), unsentDelivery(), unsentDelivery()}
			got, answered := c.answerBatch(lifetimes{t.Context(), t.Context()}, ds)
			if !answered || !slices.EqualFunc(got, tt.want, func(a, b hooks.Outcome) bool { return a.Verdict == b.Verdict && a.Reason == b.Reason }) {
				t.Errorf("answerBatch() = %+v, %v; want %+v", got, answered, tt.want)
			}
		})
	}
}

func TestABatchIsAFailureToTheBreakerWhenNoMessageIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := bufferedLog()
		answers := [][]hooks.Outcome{
			{{Verdict: hooks.Retry}}, {{Verdict: hooks.Retry}, {Verdict: hooks.Drop}}, {{Verdict: hooks.Retry}}, {{}, {}}, {{Verdict: hooks.Ack}},
		}
		var at []time.Time
		hook := batchFunc(func([]hooks.Message) ([]hooks.Outcome, error) {
			at = append(at, time.Now())
			a := answers[0]
			answers = answers[1:]
			return a, nil
		})
		c := newConsumer(Queue{Hook: hook, Concurrency: 1, Prefetch: 2, Batch: Batch{Size: 2}, Breaker: Breaker{2, time.Minute}}, shared{log: log})
		for range 5 {
			c.answerBatch(lifetimes{t.Context(), t.Context()}, []*delivery{unsentDelivery(), unsentDelivery()})
		}
		for i, want := range []time.Duration{0, 0, 0, time.Minute} {
			if d := at[i+1].Sub(at[i]); d != want {
				t.Errorf("call %d came after %v, want %v", i+2, d, want)
			}
		}
	})
}

func TestAPrefetchBelowTheBatchIsRaised(t *testing.T) {
	t.Parallel()
	log, out := bufferedLog()
	c := newConsumer(Queue{Hook: batchFunc(ackAll), Concurrency: 1, Prefetch: 10, Batch: Batch{Size: 32}}, shared{log: log})
	if c.q.Prefetch != 32 || !out.has("level=WARN") || !out.has("prefetch raised") {
		t.Errorf("prefetch %d, log %q; want 32 and a warning", c.q.Prefetch, out)
	}
}
