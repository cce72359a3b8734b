package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// A worker gets a batch as one request and may answer once or once per message.
func TestWorkerBatch(t *testing.T) {
	t.Parallel()
	batch := []hooks.Message{{Body: []byte("ack")}, {Body: []byte("drop")}, {Body: []byte{0xff}}}
	for _, tt := range []struct {
		name, answer string
		want         []hooks.Outcome
	}{
		{"one outcome holds for all", `"outcome":"retry_after","delay":"5s"`,
			slices.Repeat([]hooks.Outcome{{Verdict: hooks.RetryAfter, Delay: 5 * time.Second}}, 3)},
		{"one outcome per message", `"outcomes":[{"outcome":"ack"},{"outcome":"drop","reason":"no"},{"outcome":"retry_after","delay":"1s"}]`,
			[]hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Drop, Reason: "no"}, {Verdict: hooks.RetryAfter, Delay: time.Second}}},
		{"one that cannot be read fails its message", `"outcomes":[{"outcome":"ack"},{"outcome":"ok"},{}]`,
			[]hooks.Outcome{{Verdict: hooks.Ack}, {Reason: `malformed answer: outcome "ok" is none of ack, drop, retry, retry_after`}, {Reason: "malformed answer: no outcome"}}},
		{"one that says two things fails its message", `"outcomes":[{"outcome":"ack"},{"outcome":"drop","outcome":"ack"},{"outcome":"ack"}]`,
			[]hooks.Outcome{{Verdict: hooks.Ack}, {Reason: "malformed answer: outcome is there twice"}, {Verdict: hooks.Ack}}},
		{"two lists fail them all", `"outcomes":[{"outcome":"ack"}],"outcomes":[{"outcome":"ack"}]`, failedBatch("outcomes is there twice")},
		{"a wrong number fails them all", `"outcomes":[{"outcome":"ack"},{"outcome":"ack"}]`, failedBatch("2 outcomes for 3 messages")},
		{"none fails them all", `"outcomes":[]`, failedBatch("0 outcomes for 3 messages")},
		{"both ways of answering fail them all", `"outcome":"ack","outcomes":[{"outcome":"ack"}]`, failedBatch("both outcome and outcomes")},
		{"something else fails them all", `"outcomes":"ack"`, failedBatch("outcomes is not a list of objects")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := shWorker(t, `read -r line; printf '%s' "$line" > got; echo '{"id":"1",'`+"'"+tt.answer+"'"+`'}'; read -r line`)
			got, err := newHook(t, h, setup.Options{}).(hooks.BatchHook).HandleBatch(hooktest.Deadline(t, hooktest.Patience), batch)
			if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
			line := hooktest.ReadFile(t, h.Dir+"/got")
			for _, want := range []string{`{"id":"1","messages":[{"body":"ack","queue":`, `{"body":"drop","queue":`, `{"body_base64":"/w==","queue":`} {
				if !strings.Contains(line, want) {
					t.Errorf("the request %s does not contain %s", line, want)
				}
			}
		})
	}
}

func failedBatch(reason string) []hooks.Outcome {
	return slices.Repeat([]hooks.Outcome{{Reason: "malformed answer: " + reason}}, 3)
}

func TestWorkerBatchFailures(t *testing.T) {
	t.Parallel()
	batch := make([]hooks.Message, 3)
	for mode, want := range map[string]string{
		"crash": "worker ended with exit status 3",
		"hang":  "timed out after 30s",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			hook, ctx := newHook(t, workerHandler(t, mode), setup.Options{}), hooktest.Deadline(t, hooktest.Patience)
			if mode == "hang" {
				ctx = overdueOnceTaken(t, hook)
			}
			got, err := hook.(hooks.BatchHook).HandleBatch(ctx, batch)
			if err != nil || len(got) != len(batch) {
				t.Fatalf("got %+v, %v, want one outcome per message", got, err)
			}
			for _, o := range got {
				hooktest.WantReason(t, o, want)
			}
		})
	}
	t.Run("dead at start", func(t *testing.T) {
		t.Parallel()
		got, err := newHook(t, workerHandler(t, "dead at start"), setup.Options{}).(hooks.BatchHook).HandleBatch(hooktest.Deadline(t, hooktest.Patience), batch)
		if got != nil || !errors.Is(err, hooks.ErrUnavailable) {
			t.Errorf("got %+v, %v, want ErrUnavailable", got, err)
		}
	})
	t.Run("an answer for a batch to one message", func(t *testing.T) {
		t.Parallel()
		h := shWorker(t, `read -r line; echo '{"id":"1","outcomes":[{"outcome":"ack"}]}'; read -r line`)
		if got := handle(t, h, hooks.Message{}); got.Verdict != hooks.Failed || got.Reason != "malformed answer: outcomes is for batches" {
			t.Errorf("got %+v, want Failed", got)
		}
	})
}
