package kinds

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestExecTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, reason string
		grace, atLeast       time.Duration
	}{
		{
			name:   "a grandchild that holds the output ends too",
			script: "sleep 60 & echo $! > pids; echo hi; wait", grace: 5 * time.Second,
			reason: "timed out after 1s",
		},
		{
			name:   "what was said on stderr is told",
			script: "echo waiting for the bank >&2; echo $$ > pids; exec sleep 60", grace: 5 * time.Second,
			reason: "timed out after 1s: waiting for the bank",
		},
		{
			name:   "a process that ignores SIGTERM is killed after the grace",
			script: "trap '' TERM; echo $$ > pids; while :; do sleep 1; done", grace: 300 * time.Millisecond,
			reason: "timed out after 1s", atLeast: 300 * time.Millisecond,
		},
		{
			name: "a grandchild that ignores SIGTERM is killed after the grace",
			script: `sh -c 'trap "" TERM; echo $$ > pids; while :; do sleep 1; done' &
			         wait`, grace: 300 * time.Millisecond,
			reason: "timed out after 1s", atLeast: 300 * time.Millisecond,
		},
		{
			name:   "success after the timeout comes too late",
			script: "trap 'echo ack >&4; exit 0' TERM; echo $$ > pids; sleep 60 & wait", grace: 5 * time.Second,
			reason: "timed out after 1s",
		},
		{
			name:   "a stopped process ends",
			script: "echo $$ > pids; kill -STOP $$; sleep 60", grace: 5 * time.Second,
			reason: "timed out after 1s",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := sh(t, tt.script)
			h.Timeout, h.KillGrace = time.Second, tt.grace
			start := time.Now()
			o, err := newHook(t, h, Options{}).Handle(deadline(t, h.Timeout), hooks.Message{})
			took := time.Since(start)
			if err != nil || o.Verdict != hooks.Failed || o.Reason != tt.reason {
				t.Errorf("got %+v, %v, want Failed, %q", o, err, tt.reason)
			}
			if took < h.Timeout+tt.atLeast || took > h.Timeout+4*time.Second {
				t.Errorf("took %v", took)
			}
			wantGone(t, filepath.Join(h.Dir, "pids"))
		})
	}
}

// wantGone fails when a process of the file still runs. A zombie that waits for
// its new parent has ended.
func wantGone(t *testing.T, file string) {
	t.Helper()
	for pid := range strings.FieldsSeq(readFile(t, file)) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if syscall.Kill(n, 0) == nil && !(err == nil && strings.Contains(string(stat), ") Z ")) {
			t.Errorf("process %s still runs", pid)
		}
	}
}

func TestExecTimeoutKeepsOutput(t *testing.T) {
	t.Parallel()
	h := sh(t, "sleep 60 & echo hi; wait")
	o, log := logged()
	if _, err := newHook(t, h, o).Handle(deadline(t, 500*time.Millisecond), hooks.Message{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"line":"hi"`) {
		t.Errorf("the log lacks what was printed: %s", log)
	}
}

func TestExecLeavesBackgroundWorkAlone(t *testing.T) {
	t.Parallel()
	h := sh(t, "(echo $$; exec sleep 60) & echo $! > pid; exit 0")
	start := time.Now()
	o := handle(t, h, hooks.Message{})
	if took := time.Since(start); o.Verdict != hooks.Ack || took > 3*time.Second {
		t.Errorf("got %+v after %v, want Ack at once", o, took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, filepath.Join(h.Dir, "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the background process was ended: %v", err)
	}
}
