package exec

import (
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

func TestExecEndlessLine(t *testing.T) {
	for name, to := range map[string]string{"stdout": "", "stderr": " >&2"} {
		t.Run(name, func(t *testing.T) {
			o, log := hooktest.Logged()
			hook := newHook(t, hooktest.Shell(t, `head -c 200000000 /dev/zero | tr '\0' x`+to+"; exit 0"), o)
			hooktest.WantBounded(t, hook)
			got := log.Records(t)
			if len(got) != 1 || len(got[0]["line"].(string)) > process.MaxLine || got[0]["stream"] != name {
				t.Fatalf("%d records, want one bounded line of %s", len(got), name)
			}
			if cut := got[0]["truncated_bytes"]; cut != float64(200_000_000-process.MaxLine) {
				t.Errorf("truncated_bytes = %v", cut)
			}
		})
	}
}

func TestExecOutputIsEscaped(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	h := hooktest.Shell(t, `head -c 70000 /dev/zero | tr '\0' x; echo
printf '\000\377\033[2J\302\205\342\200\256end\n'
printf '{"level":"ERROR","msg":"forged"}\r\n'
i=0; while [ $i -lt 1000 ]; do echo "line $i"; i=$((i+1)); done >&2
exit 0`)
	if got := hooktest.Handle(t, newHook(t, h, o), hooks.Message{MessageID: "m-1", Attempt: 2}); got.Verdict != hooks.Ack {
		t.Fatalf("got %+v, want Ack", got)
	}
	byStream := map[string][]string{}
	for _, r := range log.Records(t) {
		if r["level"] != "INFO" || r["queue"] != "orders" || r["message_id"] != "m-1" || r["attempt"] != 2.0 {
			t.Fatalf("record %v does not say whose output it is", r)
		}
		if line, ok := r["line"].(string); ok {
			byStream[r["stream"].(string)] = append(byStream[r["stream"].(string)], line)
		}
	}
	out := byStream["stdout"]
	if len(out) != 3 || len(byStream["stderr"]) != 1000 {
		t.Fatalf("%d lines of stdout and %d of stderr, want 3 and 1000", len(out), len(byStream["stderr"]))
	}
	if want := `\x00\xff\x1b[2J\u0085\u202eend`; out[1] != want {
		t.Errorf("line = %q, want %q", out[1], want)
	}
	if want := `{"level":"ERROR","msg":"forged"}`; out[2] != want {
		t.Errorf("line = %q, want %q", out[2], want)
	}
}

func TestExecOutputPerDelivery(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	h := hooktest.Shell(t, `i=0; while [ $i -lt 3000 ]; do echo "................................................ $i"; i=$((i+1)); done; exit 1`)
	hooktest.Handle(t, newHook(t, h, o), hooks.Message{})
	got := log.Records(t)
	sum := 0
	for _, r := range got[:len(got)-1] {
		sum += len(r["line"].(string))
	}
	last := got[len(got)-1]
	if sum > process.MaxStream || sum < process.MaxStream-100 {
		t.Errorf("%d bytes were logged, want about %d", sum, process.MaxStream)
	}
	if last["msg"] != "handler output truncated" || last["truncated_bytes"].(float64) < 50_000 {
		t.Errorf("last record = %v, want the truncated mark", last)
	}
}

func TestExecReasonIsBounded(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, `head -c 70000 /dev/zero | tr '\0' x >&2; printf '\n\033[31mred\nlast \377\n' >&2; exit 1`)
	if o := handle(t, h, hooks.Message{}); o.Reason != `exit status 1: last \xff` {
		t.Errorf("reason = %q", o.Reason)
	}
	long := hooktest.Shell(t, `head -c 70000 /dev/zero | tr '\0' x >&2; exit 1`)
	if o := handle(t, long, hooks.Message{}); len(o.Reason) > message.MaxReason || !strings.HasSuffix(o.Reason, "xx…") {
		t.Errorf("reason of %d bytes ends in %q", len(o.Reason), o.Reason[len(o.Reason)-10:])
	}
}
