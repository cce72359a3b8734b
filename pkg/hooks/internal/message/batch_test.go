package message

import (
	"slices"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/schema"
)

// Every kind hands over the messages of a batch in the form that the schema of a
// worker's request describes.
func TestAppendMessages_KeepsToTheSchema(t *testing.T) {
	t.Parallel()
	valid := hooktest.Validator(t, schema.WorkerRequest)
	text := string(AppendMessages(nil, hooktest.Three(), ','))
	if err := valid([]byte(`{"id":"1","messages":[` + text + `]}`)); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	lines := strings.Split(string(AppendMessages(nil, hooktest.Three(), '\n')), "\n")
	if len(lines) != 3 || strings.Join(lines, ",") != text {
		t.Errorf("the lines %q are not the array %q", lines, text)
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
		got := BatchAnswer(text, 2)
		if len(got) != 2 {
			t.Fatalf("%q: %d outcomes", text, len(got))
		}
		acks := slices.ContainsFunc(got, func(o hooks.Outcome) bool { return o.Verdict == hooks.Ack })
		if acks && !strings.Contains(string(text), "outcome") && !strings.Contains(string(text), `\u`) {
			t.Errorf("%q acks", text)
		}
		for _, o := range got {
			if strings.ContainsAny(o.Reason, "\n\r\x00\x1b") || len(o.Reason) > MaxReason {
				t.Errorf("%q: reason %q", text, o.Reason)
			}
		}
	})
}

// What is said twice in the answer to a batch of an endpoint, which has no id, is
// not said at all.
func TestBatchAnswer_ThatSaysAThingTwiceIsNone(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"outcome":"ack","outcome":"drop"}`:                                         "malformed answer: outcome is there twice",
		`{"outcomes":[{"outcome":"ack"}],"outcomes":[{"outcome":"ack"}]}`:            "malformed answer: outcomes is there twice",
		`{"outcomes":[{"outcome":"ack","outcome":"ack"},{"outcome":"ack"}]}`:         "malformed answer: outcome is there twice",
		`{"id":"1","id":"1","outcome":"ack"}`:                                        "malformed answer: it has two ids",
		`{"outcome":"ack"}{"outcome":"drop"}`:                                        "malformed answer: no JSON object",
		`{"outcomes":[{"id":"1","id":"2","outcome":"ack"},{"outcome":"ack"}],"a":1}`: "malformed answer: id is there twice",
	} {
		got := BatchAnswer([]byte(answer), 2)
		if len(got) != 2 || got[0].Verdict != hooks.Failed || !strings.HasPrefix(got[0].Reason, want) {
			t.Errorf("%s: %+v, want %q", answer, got, want)
		}
	}
}
