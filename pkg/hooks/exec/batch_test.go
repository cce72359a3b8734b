package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestExecBatchInput(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, "cat > in; cat <&3 > metadata; env > env")
	o := setup.Options{Env: []string{
		"PATH=" + process.DefaultPath, "RSCTL_ATTEMPT=9", "RSCTL_MESSAGE_ID=other", "RSCTL_BATCH_SIZE=9", "RSCTL_HEADER_TENANT=other",
	}}
	if got := hooktest.HandleBatch(t, newHook(t, h, o), hooktest.Three()); got[0].Verdict != hooks.Ack {
		t.Fatalf("got %+v, want Ack", got)
	}
	lines := strings.SplitAfter(hooktest.ReadFile(t, filepath.Join(h.Dir, "in")), "\n")
	if len(lines) != 4 || lines[3] != "" {
		t.Fatalf("the process read %q, want three whole lines", lines)
	}
	for i, want := range []string{`{"body":"one\n\"two\"","queue":"rows",`, `{"body_base64":"/wA=","queue":"rows",`, `{"body":"","queue":"rows",`} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %s, want it to begin with %s", i+1, lines[i], want)
		}
	}
	var metadata []map[string]any
	if err := json.Unmarshal([]byte(hooktest.ReadFile(t, filepath.Join(h.Dir, "metadata"))), &metadata); err != nil || len(metadata) != 3 {
		t.Fatalf("metadata %v, %v; want a list of three", metadata, err)
	}
	for i, want := range []string{"a 1 false 5", "b 2 true 5", "c 1 false 5"} {
		m := metadata[i]
		if got := fmt.Sprint(m["message_id"], " ", m["attempt"], " ", m["redelivered"], " ", m["max_attempts"]); got != want {
			t.Errorf("metadata of message %d: %s, want %s", i+1, got, want)
		}
	}
	env := strings.Split(hooktest.ReadFile(t, filepath.Join(h.Dir, "env")), "\n")
	for _, want := range []string{"RSCTL_QUEUE=rows", "RSCTL_MAX_ATTEMPTS=5", "RSCTL_BATCH_SIZE=3"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, kv := range env {
		if strings.HasPrefix(kv, "RSCTL_") && !slices.Contains([]string{"RSCTL_QUEUE", "RSCTL_MAX_ATTEMPTS", "RSCTL_BATCH_SIZE"}, strings.SplitN(kv, "=", 2)[0]) {
			t.Errorf("the environment has %s, which is not the same for all", kv)
		}
	}
}

func TestExecEnvironmentOfOneMessageHasNoBatchSize(t *testing.T) {
	t.Parallel()
	env := environment(t, hooktest.Command(t, "x"), setup.Options{Env: []string{"PATH=" + process.DefaultPath, "RSCTL_BATCH_SIZE=9"}}, hooks.Message{Queue: "rows"})
	if v, ok := env["RSCTL_BATCH_SIZE"]; ok {
		t.Errorf("RSCTL_BATCH_SIZE = %s", v)
	}
}

func malformedFD4(why string) []hooks.Outcome {
	return message.ForAll(hooks.Outcome{Reason: "malformed answer on descriptor 4: " + why}, 3)
}

func TestExecBatchOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         []hooks.Outcome
	}{
		{"exit code 0 acks all", "exit 0", message.ForAll(hooks.Outcome{Verdict: hooks.Ack}, 3)},
		{"exit code 65 drops all", "exit 65", message.ForAll(hooks.Outcome{Verdict: hooks.Drop, Reason: "exit status 65"}, 3)},
		{"any other exit code retries all", "echo no database >&2; exit 1", message.ForAll(hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1: no database"}, 3)},
		{"a code of the spec", "exit 20", message.ForAll(hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 30 * time.Second, Reason: "exit status 20"}, 3)},
		{"a kill fails all", "kill -9 $$", message.ForAll(hooks.Outcome{Reason: "killed by signal 9 (KILL)"}, 3)},
		{"one line that retries holds for all", "echo retry_after 5s busy >&4; exit 1", message.ForAll(hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 5 * time.Second, Reason: "busy"}, 3)},
		{"one line per message", "printf 'ack\\ndrop no such row\\nretry_after 1m\\n' >&4",
			[]hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Drop, Reason: "no such row"}, {Verdict: hooks.RetryAfter, Delay: time.Minute}}},
		{"the last line break may be missing", "printf 'ack\\nack\\nretry' >&4", []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Ack}, {Verdict: hooks.Retry}}},
		{"line breaks of another system", "printf 'ack\\r\\nack\\r\\ndrop\\r\\n' >&4", []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Ack}, {Verdict: hooks.Drop}}},
		{"a line per message overrides the exit code", "printf 'ack\\nack\\ndrop\\n' >&4; exit 1", []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Ack}, {Verdict: hooks.Drop}}},
		{"a line that cannot be read fails its message", "printf 'ack\\nok\\ndrop\\n' >&4", []hooks.Outcome{{Verdict: hooks.Ack},
			{Reason: `malformed answer on descriptor 4: "ok" is none of ack, drop, retry, retry_after`}, {Verdict: hooks.Drop}}},
		{"an empty line is a line", "printf 'ack\\n\\ndrop\\n' >&4", []hooks.Outcome{{Verdict: hooks.Ack},
			{Reason: `malformed answer on descriptor 4: "" is none of ack, drop, retry, retry_after`}, {Verdict: hooks.Drop}}},
		{"too few lines fail all", "printf 'ack\\nack\\n' >&4", malformedFD4("2 of 3 lines")},
		{"too many lines fail all", "printf 'ack\\nack\\nack\\nack\\n' >&4", malformedFD4("4 of 3 lines")},
		{"a loop that ends after the first line acks nothing", "echo ack >&4; exit 0", malformedFD4("1 of 3 lines")},
		{"nor drops anything", "echo drop >&4; exit 0", malformedFD4("1 of 3 lines")},
		{"a crash after the first line acks nothing", "echo ack >&4; echo Traceback >&2; exit 1", malformedFD4("1 of 3 lines, and exit status 1: Traceback")},
		{"nor does a kill after it", "echo ack >&4; kill -9 $$", malformedFD4("1 of 3 lines, and killed by signal 9 (KILL)")},
		{"garbage for all fails all", "echo all good >&4",
			malformedFD4(`"all" is none of ack, drop, retry, retry_after`)},
		{"an endless answer fails all", "yes ack | head -c 300000 >&4; exit 0", malformedFD4("longer than 12288 bytes")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := hooktest.Shell(t, tt.script)
			h.ExitCodes = []spec.CodeRule{{From: 20, To: 20, Outcome: spec.Outcome{Kind: "retry_after", Delay: 30 * time.Second}}}
			hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three()), tt.want)
		})
	}
}

func TestExecBatchOfOne(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, `test "$RSCTL_BATCH_SIZE" = 1 && test "$(wc -l)" -eq 1 && echo drop no >&4; exit 3`)
	hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three()[:1]), []hooks.Outcome{{Verdict: hooks.Drop, Reason: "no"}})
}

func TestExecBatchLargerThanAPipe(t *testing.T) {
	t.Parallel()
	ms := slices.Repeat([]hooks.Message{{Queue: "rows", Attempt: 1, Body: bytes.Repeat([]byte("x"), 10_000)}}, 100)
	h := hooktest.Shell(t, `wc -l > lines; while read -r _; do :; done; cat <&3 > metadata`)
	hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), ms), message.ForAll(hooks.Outcome{Verdict: hooks.Ack}, 100))
	if got := strings.TrimSpace(hooktest.ReadFile(t, filepath.Join(h.Dir, "lines"))); got != "100" {
		t.Errorf("%s lines arrived, want 100", got)
	}
	hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, hooktest.Command(t, "true"), setup.Options{}), ms), message.ForAll(hooks.Outcome{Verdict: hooks.Ack}, 100)) // reads nothing
}

func TestExecBatchTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, `trap '' TERM; printf 'ack\nack\nack\n' >&4; echo $$ >> pids
		sh -c 'echo ready >&2; echo $$ >> pids; while :; do sleep 1; done' & wait`)
	h.KillGrace = 200 * time.Millisecond
	pids, ctx := filepath.Join(h.Dir, "pids"), hooktest.NewOverdue()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer ctx.Pass()
		hooktest.Eventually(t, "both processes", func() bool {
			data, _ := os.ReadFile(pids)
			return bytes.Count(data, []byte("\n")) == 2
		})
	})
	got, err := newHook(t, h, setup.Options{}).(hooks.BatchHook).HandleBatch(ctx, hooktest.Three())
	waiting.Wait()
	if err != nil {
		t.Fatal(err)
	}
	hooktest.WantOutcomes(t, got, message.ForAll(hooks.Outcome{Reason: "timed out after 30s: ready"}, 3))
	hooktest.WantGone(t, pids)
}

func TestExecBatchOutputIsLoggedWithItsBounds(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	h := hooktest.Shell(t, `printf 'a\033[2Jb\n'; head -c 200000 /dev/zero | tr '\0' 'x' | fold -w 1000 >&2; exit 0`)
	hooktest.HandleBatch(t, newHook(t, h, o), hooktest.Three())
	if text := log.String(); !strings.Contains(text, `"line":"a\\x1b[2Jb"`) || !strings.Contains(text, "truncated_bytes") || len(text) > 200_000 {
		t.Errorf("the log of %d bytes lacks a line or its bound: %.500s", len(text), text)
	}
}
