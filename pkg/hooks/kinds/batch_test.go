package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/schema"
)

// three is a batch with a body that is no UTF-8, and attempts that differ.
func three() []hooks.Message {
	return []hooks.Message{
		{Queue: "rows", RoutingKey: "rows", MessageID: "a", Attempt: 1, MaxAttempts: 5, Body: []byte("one\n\"two\"")},
		{Queue: "rows", RoutingKey: "rows", MessageID: "b", Attempt: 2, MaxAttempts: 5, Redelivered: true, Body: []byte{0xff, 0}},
		{Queue: "rows", RoutingKey: "rows", MessageID: "c", Attempt: 1, MaxAttempts: 5, Headers: map[string]any{"tenant": "x"}},
	}
}

// handleBatch runs a batch through the hook and fails on an unavailable one.
func handleBatch(t *testing.T, hook hooks.Hook, ms []hooks.Message) []hooks.Outcome {
	t.Helper()
	got, err := hook.(hooks.BatchHook).HandleBatch(deadline(t, patience), ms)
	if err != nil {
		t.Fatalf("HandleBatch() error = %v, want none", err)
	}
	return got
}

func wantOutcomes(t *testing.T, got, want []hooks.Outcome) {
	t.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every kind hands over the messages of a batch in the form that the schema of a
// worker's request describes.
func TestTheMessagesOfABatchKeepToTheSchema(t *testing.T) {
	t.Parallel()
	valid := validator(t, schema.WorkerRequest)
	text := string(appendMessages(nil, three(), ','))
	if err := valid([]byte(`{"id":"1","messages":[` + text + `]}`)); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	lines := strings.Split(string(appendMessages(nil, three(), '\n')), "\n")
	if len(lines) != 3 || strings.Join(lines, ",") != text {
		t.Errorf("the lines %q are not the array %q", lines, text)
	}
}

// A BatchHook of every kind keeps the promises of that interface.
func TestBatchesOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind, build := range map[string]func(*testing.T) kindUnderTest{
		"exec": execUnderTest, "worker": workerUnderTest, "http": httpUnderTest,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := build(t)
			t.Run("a call returns soon after its deadline and fails every message", func(t *testing.T) {
				t.Parallel()
				wantAllFailed(t, k.hangs, deadline(t, stuckFor), "timed out after 30s")
			})
			t.Run("a call whose context is done fails every message at once", func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				wantAllFailed(t, k.answers, ctx, "interrupted")
			})
			t.Run("an answer that cannot be read fails every message", func(t *testing.T) {
				t.Parallel()
				wantAllFailed(t, k.babbles, deadline(t, patience), "")
			})
			t.Run("an endless answer comes to an end", func(t *testing.T) {
				t.Parallel()
				if got := handleBatch(t, k.floods, three()); len(got) != 3 {
					t.Errorf("got %+v, want one outcome per message", got)
				}
			})
			t.Run("a handler that is not there is an error, not an outcome", func(t *testing.T) {
				t.Parallel()
				got, err := k.absent.(hooks.BatchHook).HandleBatch(deadline(t, patience), three())
				if got != nil || !errors.Is(err, hooks.ErrUnavailable) {
					t.Errorf("got %+v, %v, want ErrUnavailable", got, err)
				}
			})
		})
	}
}

func wantAllFailed(t *testing.T, hook hooks.Hook, ctx context.Context, reason string) {
	t.Helper()
	got, err := hook.(hooks.BatchHook).HandleBatch(ctx, three())
	if err != nil || len(got) != 3 {
		t.Fatalf("got %+v, %v, want one outcome per message", got, err)
	}
	for _, o := range got {
		if o.Verdict != hooks.Failed || o.Reason == "" {
			t.Errorf("got %+v, want Failed with a reason", o)
		}
		wantReason(t, o, reason)
	}
}

// Nothing but a whole answer acks, and there is one outcome for each message.
func FuzzBatchAnswer(f *testing.F) {
	for _, text := range []string{
		`{"outcomes":[{"outcome":"ack"},{"outcome":"drop"}]}`, `{"outcome":"ack"}`, `{"outcomes":[{"outcome":"ack"}]}`,
		`{"outcomes":[null,{}]}`, `{"outcomes":null,"outcome":"retry"}`, `{}`, `[]`, `{"outcomes":[{"outcome":"ack"},{"outcome":"ack"}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := batchAnswer(text, 2)
		if len(got) != 2 {
			t.Fatalf("%q: %d outcomes", text, len(got))
		}
		acks := slices.ContainsFunc(got, func(o hooks.Outcome) bool { return o.Verdict == hooks.Ack })
		if acks && !strings.Contains(string(text), "outcome") && !strings.Contains(string(text), `\u`) {
			t.Errorf("%q acks", text)
		}
		for _, o := range got {
			if strings.ContainsAny(o.Reason, "\n\r\x00\x1b") || len(o.Reason) > maxReason {
				t.Errorf("%q: reason %q", text, o.Reason)
			}
		}
	})
}

// What is said twice in the answer to a batch of an endpoint, which has no id, is
// not said at all.
func TestABatchAnswerThatSaysAThingTwiceIsNone(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"outcome":"ack","outcome":"drop"}`:                                         "malformed answer: outcome is there twice",
		`{"outcomes":[{"outcome":"ack"}],"outcomes":[{"outcome":"ack"}]}`:            "malformed answer: outcomes is there twice",
		`{"outcomes":[{"outcome":"ack","outcome":"ack"},{"outcome":"ack"}]}`:         "malformed answer: outcome is there twice",
		`{"id":"1","id":"1","outcome":"ack"}`:                                        "malformed answer: it has two ids",
		`{"outcome":"ack"}{"outcome":"drop"}`:                                        "malformed answer: no JSON object",
		`{"outcomes":[{"id":"1","id":"2","outcome":"ack"},{"outcome":"ack"}],"a":1}`: "malformed answer: id is there twice",
	} {
		got := batchAnswer([]byte(answer), 2)
		if len(got) != 2 || got[0].Verdict != hooks.Failed || !strings.HasPrefix(got[0].Reason, want) {
			t.Errorf("%s: %+v, want %q", answer, got, want)
		}
	}
}
