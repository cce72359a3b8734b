package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func underTest(t *testing.T) hooktest.Kind {
	build := func(h *spec.Handler) hooks.Hook { return newHook(t, h, setup.Options{}) }
	return hooktest.Kind{
		Answers: build(hooktest.Shell(t, "cat >&4")),
		Hangs:   build(hooktest.Shell(t, "sleep 60 & wait")),
		Floods:  build(hooktest.Shell(t, "head -c 100000000 /dev/zero")),
		Babbles: build(hooktest.Shell(t, `printf 'all \033[2J good\n' >&4; exit 0`)),
		Absent:  build(hooktest.Command(t, "./gone.sh")),
	}
}

func TestHook_Conforms(t *testing.T) { hooktest.Conform(t, underTest(t)) }

func TestHook_ConformsForBatches(t *testing.T) {
	t.Parallel()
	hooktest.ConformBatch(t, underTest(t))
}

func TestExecOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         hooks.Outcome
	}{
		{"exit code 0 acks", "exit 0", hooks.Outcome{Verdict: hooks.Ack}},
		{"exit code 65 drops", "exit 65", hooks.Outcome{Verdict: hooks.Drop, Reason: "exit status 65"}},
		{"exit code 75 retries", "exit 75", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 75"}},
		{"any other exit code retries", "exit 1", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1"}},
		{"the last line of stderr is the reason", "echo a >&2; echo no stock >&2; echo >&2; exit 1",
			hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1: no stock"}},
		{"a last line without a line break counts", "printf broken >&2; exit 1",
			hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1: broken"}},
		{"stdout is no reason", "echo hi; exit 1", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1"}},
		{"an ack has no reason", "echo careful >&2", hooks.Outcome{Verdict: hooks.Ack}},
		{"a kill is told from an exit code", "kill -9 $$", hooks.Outcome{Reason: "killed by signal 9 (KILL)"}},
		{"a crash names its signal", "kill -SEGV $$", hooks.Outcome{Reason: "killed by signal 11 (SEGV)"}},
		{"an exit code like a shell's signal is an exit code", "exit 137", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 137"}},
		{"descriptor 4 overrides the exit code", "echo ack >&4; exit 1", hooks.Outcome{Verdict: hooks.Ack}},
		{"descriptor 4 overrides success", "echo retry >&4; exit 0", hooks.Outcome{Verdict: hooks.Retry}},
		{"descriptor 4 carries a reason", "echo drop no such customer >&4", hooks.Outcome{Verdict: hooks.Drop, Reason: "no such customer"}},
		{"descriptor 4 carries a delay and a reason", "echo retry_after 1m30s bank is closed >&4",
			hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 90 * time.Second, Reason: "bank is closed"}},
		{"a delay may be in days", "printf 'retry_after 7d' >&4", hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 168 * time.Hour}},
		{"a line break alone is no answer", "echo >&4; exit 0",
			hooks.Outcome{Reason: `malformed answer on descriptor 4: "" is none of ack, drop, retry, retry_after`}},
		{"two answers are none", "echo ack >&4; echo retry >&4",
			hooks.Outcome{Reason: "malformed answer on descriptor 4: more than one line"}},
		{"a delay without a unit is no answer", "echo retry_after 30 >&4",
			hooks.Outcome{Reason: `malformed answer on descriptor 4: delay "30" is not a duration such as 30s: missing unit`}},
		{"an endless answer does not block the process", "head -c 300000 /dev/zero >&4; exit 0",
			hooks.Outcome{Reason: "malformed answer on descriptor 4: longer than 4096 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := handle(t, hooktest.Shell(t, tt.script), hooks.Message{})
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestExecExitCodeRules(t *testing.T) {
	t.Parallel()
	rules := []spec.CodeRule{
		{From: 3, To: 3, Outcome: spec.Outcome{Kind: "drop"}},
		{From: 10, To: 19, Outcome: spec.Outcome{Kind: "ack"}},
		{From: 20, To: 20, Outcome: spec.Outcome{Kind: "retry_after", Delay: 30 * time.Second}},
		{From: -1, To: -1, Outcome: spec.Outcome{Kind: "ack"}},
		{From: 65, To: 65, Outcome: spec.Outcome{Kind: "retry"}},
	}
	for _, tt := range []struct {
		name, script string
		verdict      hooks.Verdict
		delay        time.Duration
	}{
		{"one code", "exit 3", hooks.Drop, 0},
		{"the start of a range", "exit 10", hooks.Ack, 0},
		{"the end of a range", "exit 19", hooks.Ack, 0},
		{"a delay", "exit 20", hooks.RetryAfter, 30 * time.Second},
		{"a rule comes before the default", "exit 65", hooks.Retry, 0},
		{"no rule matches a signal", "kill -9 $$", hooks.Failed, 0},
		{"a code without a rule keeps its default", "exit 0", hooks.Ack, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := hooktest.Shell(t, tt.script)
			h.ExitCodes = rules
			if got := handle(t, h, hooks.Message{}); got.Verdict != tt.verdict || got.Delay != tt.delay {
				t.Errorf("got %+v, want %v %v", got, tt.verdict, tt.delay)
			}
		})
	}
}

func TestExecBody(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, body := range map[string][]byte{
		"an empty body is an immediate end of file": nil,
		"a NUL byte":               {0},
		"every byte":               all,
		"no line break at its end": []byte("text"),
		"as much as is prewritten": bytes.Repeat([]byte("x"), process.PipeSafe),
		"one byte more than that":  bytes.Repeat([]byte("x"), process.PipeSafe+1),
		"larger than a pipe":       bytes.Repeat(all, 8192),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hooktest.Shell(t, "cat > got")
			if o := handle(t, h, hooks.Message{Body: body}); o.Verdict != hooks.Ack {
				t.Fatalf("got %+v, want Ack", o)
			}
			if got := hooktest.ReadFile(t, filepath.Join(h.Dir, "got")); got != string(body) {
				t.Errorf("the process read %d bytes, want the %d sent", len(got), len(body))
			}
		})
	}
}

func TestExecInputNotRead(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1<<20)
	headers := map[string]any{"large": strings.Repeat("y", 300_000)} // fills descriptor 3
	for name, h := range map[string]*spec.Handler{
		"nothing is read":           hooktest.Command(t, "true"),
		"a part of the body is":     hooktest.Shell(t, "head -c 10 >/dev/null; exit 0"),
		"its own stdin is closed":   hooktest.Shell(t, "exec <&- 3<&-; exit 0"),
		"the answer is closed also": hooktest.Shell(t, "exec 4>&- >&- 2>&-; exit 0"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, log := hooktest.Logged()
			got := hooktest.Handle(t, newHook(t, h, o), hooks.Message{Body: large, Headers: headers})
			if got.Verdict != hooks.Ack || strings.Contains(log.String(), "ERROR") {
				t.Errorf("got %+v, want Ack; log: %s", got, log)
			}
		})
	}
}

func TestMetadata_IsOnDescriptor3(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, "cat <&3 >meta")
	m := hooks.Message{
		Queue: "orders", MessageID: "m-1", Timestamp: 1_700_000_000_000,
		Headers: map[string]any{"sent": int64(1_700_000_000_000), "large": strings.Repeat("é", 100_000)},
	}
	if o := handle(t, h, m); o.Verdict != hooks.Ack {
		t.Fatalf("got %+v, want Ack", o)
	}
	var got struct {
		Queue     string
		Timestamp int64
		Headers   map[string]any
	}
	if err := json.Unmarshal([]byte(hooktest.ReadFile(t, filepath.Join(h.Dir, "meta"))), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"sent": 1.7e12, "large": m.Headers["large"]}
	if got.Queue != "orders" || got.Timestamp != m.Timestamp || !reflect.DeepEqual(got.Headers, want) {
		t.Errorf("descriptor 3 held queue %q, timestamp %d and other headers", got.Queue, got.Timestamp)
	}
}

func TestHook_DoesNotCopyALargeBody(t *testing.T) {
	one := newHook(t, hooktest.Shell(t, "cat >/dev/null; echo ack >&4"), setup.Options{})
	batch := newHook(t, hooktest.Shell(t, "cat >/dev/null"), setup.Options{})
	hooktest.WantNotCopied(t, one, batch)
}
