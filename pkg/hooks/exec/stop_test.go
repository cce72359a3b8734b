package exec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestExecTimeout(t *testing.T) {
	t.Parallel()
	const short = 300 * time.Millisecond // what needs a kill gets it; else the grace is never over
	for _, tt := range []struct {
		name, script, reason string
		grace                time.Duration
	}{
		{
			name:   "a grandchild that holds the output ends too",
			script: "sleep 600 & echo hi; echo $! > pids; wait", grace: time.Hour,
			reason: "timed out after 1s",
		},
		{
			name:   "what was said on stderr is told",
			script: "echo waiting for the bank >&2; echo $$ > pids; exec sleep 600", grace: time.Hour,
			reason: "timed out after 1s: waiting for the bank",
		},
		{
			name:   "a process that ignores SIGTERM is killed after the grace",
			script: "trap '' TERM; echo $$ > pids; while :; do sleep 1; done", grace: short,
			reason: "timed out after 1s",
		},
		{
			name: "a grandchild that ignores SIGTERM is killed after the grace",
			script: `sh -c 'trap "" TERM; echo $$ > pids; while :; do sleep 1; done' &
			         wait`, grace: short,
			reason: "timed out after 1s",
		},
		{
			// A child that a shell with a trap is just forking may not see the signal.
			name:   "success after the timeout comes too late",
			script: "trap 'echo ack >&4; exit 0' TERM; echo $$ > pids; sleep 600 & wait", grace: 5 * time.Second,
			reason: "timed out after 1s",
		},
		{
			name:   "a stopped process ends",
			script: "echo $$ > pids; kill -STOP $$; sleep 600", grace: time.Hour,
			reason: "timed out after 1s",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := hooktest.Shell(t, tt.script)
			h.Timeout, h.KillGrace = time.Second, tt.grace
			pids := filepath.Join(h.Dir, "pids")
			o, took, err := handleUntil(t, h, setup.Options{}, pids)
			if err != nil || o.Verdict != hooks.Failed || o.Reason != tt.reason {
				t.Errorf("got %+v, %v, want Failed, %q", o, err, tt.reason)
			}
			if tt.grace == short && took < short || took > hooktest.Patience {
				t.Errorf("took %v after the timeout, with a grace of %v", took, tt.grace)
			}
			hooktest.WantGone(t, pids)
		})
	}
}

// handleUntil runs one message whose time is up once the process has written a
// line to the file, and returns how long it took from then on.
func handleUntil(t *testing.T, h *spec.Handler, opts setup.Options, file string) (o hooks.Outcome, took time.Duration, err error) {
	t.Helper()
	hook, ctx := newHook(t, h, opts), hooktest.NewOverdue()
	var up time.Time
	var waiting sync.WaitGroup
	waiting.Go(func() {
		hooktest.Eventually(t, "a line in "+file, func() bool {
			data, _ := os.ReadFile(file)
			return strings.HasSuffix(string(data), "\n")
		})
		up = time.Now()
		ctx.Pass()
	})
	o, err = hook.Handle(ctx, hooks.Message{})
	waiting.Wait()
	return o, time.Since(up), err
}

func TestExecTimeoutKeepsOutput(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, "sleep 600 & echo hi; echo > said; wait")
	o, log := hooktest.Logged()
	if _, _, err := handleUntil(t, h, o, filepath.Join(h.Dir, "said")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"line":"hi"`) {
		t.Errorf("the log lacks what was printed: %s", log)
	}
}

func TestExecLeavesBackgroundWorkAlone(t *testing.T) {
	t.Parallel()
	h := hooktest.Shell(t, "(echo $$; exec sleep 3600) & echo $! > pid; exit 0")
	if o := handle(t, h, hooks.Message{}); o.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack", o)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(hooktest.ReadFile(t, filepath.Join(h.Dir, "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the background process was ended: %v", err)
	}
}
