package worker

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

func underTest(t *testing.T) hooktest.Kind {
	build := func(mode string) hooks.Hook {
		return newHook(t, workerHandler(t, mode), setup.Options{Concurrency: 4})
	}
	absent := hooktest.Command(t, "./gone.py")
	absent.Kind = "worker"
	return hooktest.Kind{
		Answers: build("obey"),
		Hangs:   build("hang"),
		Floods:  build("flood stderr"),
		Babbles: build("babble"),
		Absent:  newHook(t, absent, setup.Options{}),
	}
}

func TestWorkers_Conform(t *testing.T) { hooktest.Conform(t, underTest(t)) }

func TestWorkers_ConformForBatches(t *testing.T) {
	t.Parallel()
	hooktest.ConformBatch(t, underTest(t))
}

// A worker that breaks the protocol or dies fails what it had, with a reason
// and one log line; the next message meets a new process.
func TestWorkerFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode   string
		reason string // a time-out's for a worker that never ends by itself
	}{
		{"crash", "worker ended with exit status 3"},
		{"garbage", `worker stopped: printed a line that is no JSON object: all \x1b[2J good`},
		{"unknown id", "worker stopped: answered request 4711, which it never got"},
		{"endless line", `worker stopped: printed a line of more than 1048576 bytes, beginning with xxx`},
		{"flood of answers", "worker stopped: answered request 4711, which it never got"},
		{"flood of nothing", "timed out after 30s"},
		{"close stdout", "worker stopped: closed its standard output and went on"},
		{"never read", "timed out after 30s"},
		{"hang", "timed out after 30s"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o, log := hooktest.Logged()
			hook := newHook(t, workerHandler(t, tt.mode), o)
			for range 2 {
				ctx := hooktest.Deadline(t, hooktest.Patience)
				if strings.HasPrefix(tt.reason, "timed out") {
					ctx = overdueOnceTaken(t, hook)
				}
				got, err := hook.Handle(ctx, hooks.Message{MessageID: "m"})
				if err != nil || got.Verdict != hooks.Failed {
					t.Fatalf("got %+v, %v, want Failed", got, err)
				}
				hooktest.WantReason(t, got, tt.reason)
			}
			if n := strings.Count(log.String(), "worker process ended"); n != 2 {
				t.Errorf("%d log lines say that a process ended, want 2:\n%s", n, log)
			}
		})
	}
}

func TestWorkerThatAnswersTwiceIsReplaced(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, workerHandler(t, "twice"), o)
	for range 3 { // the second answer may come while the next request is in flight
		got, err := hook.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{})
		if err != nil || got.Verdict == hooks.Failed && !strings.Contains(got.Reason, "twice") {
			t.Errorf("got %+v, %v, want Ack or a failure that says why", got, err)
		}
	}
	hook.(hooks.Closer).Close()
	if !strings.Contains(log.String(), "stopped: answered request 1 twice") {
		t.Errorf("the log does not say what happened:\n%s", log)
	}
}

// A worker that closes its input gets no request any more; the second one goes
// to a new process and is not failed for that.
func TestWorkerThatClosesItsInputIsReplaced(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, workerHandler(t, "close stdin"), o)
	if got := hooktest.Handle(t, hook, hooks.Message{}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack", got)
	}
	got := hooktest.Handle(t, hook, hooks.Message{})
	if got.Verdict != hooks.Failed {
		t.Errorf("got %+v, want Failed", got)
	}
	hooktest.WantReason(t, got, "closed its standard input and went on")
	if got := hooktest.Handle(t, hook, hooks.Message{}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack from a new process; log:\n%s", got, log)
	}
}

func TestWorkerCrashFailsOnlyWhatWasInFlight(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	o.Concurrency = 4
	hook := newHook(t, workerHandler(t, "mixed"), o)
	var done sync.WaitGroup
	for i := range 40 {
		done.Go(func() {
			body, want := "fine", hooks.Ack
			if i%10 == 0 {
				body, want = "crash", hooks.Failed
			}
			got, err := hook.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{Body: []byte(body)})
			if err != nil || got.Verdict != want {
				t.Errorf("%s: got %+v, %v, want %v", body, got, err, want)
			}
			if want == hooks.Failed {
				hooktest.WantReason(t, got, "exit status 3: out of ideas")
			}
		})
	}
	done.Wait()
	if n := strings.Count(log.String(), `"failed":1`); n != 4 {
		t.Errorf("%d processes took one delivery with them, want 4:\n%s", n, log)
	}
}

// What a process had not read when it ended by itself goes to the next one.
func TestWorkerPassesOnWhatWasNotRead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"after it has answered": "exit 0",
		"with an error":         "exit 4",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := shWorker(t, `read -r line; sleep 0.2; id=${line#*:\"}; echo "{\"id\":\"${id%%\"*}\",\"outcome\":\"ack\"}"; `+end)
			h.Processes, h.Pipeline = 1, 4
			hook := newHook(t, h, setup.Options{Concurrency: 4})
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					got, err := hook.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{})
					if err != nil || got.Verdict != hooks.Ack {
						t.Errorf("got %+v, %v, want Ack", got, err)
					}
				})
			}
			calls.Wait()
		})
	}
}

// The others in a killed process fail with a reason that blames the right one.
func TestWorkerTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	h := shWorker(t, `trap '' TERM; sleep 300 & echo $$ > pids; echo $! >> pids; echo > ready; read -r line; wait`)
	h.KillGrace, h.Processes, h.Pipeline = 100*time.Millisecond, 1, 2
	o, log := hooktest.Logged()
	hook, ctx := newHook(t, h, o), hooktest.NewOverdue()
	var calls sync.WaitGroup
	calls.Go(func() {
		got, err := hook.Handle(ctx, hooks.Message{})
		if err != nil {
			t.Error(err)
		}
		hooktest.WantReason(t, got, "timed out after 30s")
	})
	calls.Go(func() {
		got, err := hook.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{})
		if err != nil || got.Verdict != hooks.Failed {
			t.Errorf("got %+v, %v, want Failed", got, err)
		}
		hooktest.WantReason(t, got, "stopped: a call timed out after 30s")
	})
	hooktest.Eventually(t, "both calls to be in the process", func() bool {
		_, err := os.Stat(h.Dir + "/ready")
		return err == nil && hook.(*workers).pool.inFlight() == 2
	})
	ctx.Pass()
	calls.Wait()
	hooktest.WantGone(t, h.Dir+"/pids")
	if t.Failed() {
		t.Log(log)
	}
}

// overdueOnceTaken returns a context whose time is up once the hook's first
// process has a call.
func overdueOnceTaken(t *testing.T, hook hooks.Hook) context.Context {
	ctx := hooktest.NewOverdue()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer ctx.Pass()
		hooktest.Eventually(t, "a process to have the call", func() bool { return hook.(*workers).pool.inFlight() == 1 })
	})
	t.Cleanup(waiting.Wait)
	return ctx
}

// inFlight is how many calls the first process has.
func (p *pool) inFlight() int {
	p.mu.Lock()
	proc := p.slots[0].proc
	p.mu.Unlock()
	if proc == nil {
		return 0
	}
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return len(proc.calls)
}

func TestWorkerDeadAtStartIsUnavailable(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, workerHandler(t, "dead at start"), o)
	for range 2 {
		got, err := hook.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{})
		if !errors.Is(err, hooks.ErrUnavailable) || got.Verdict != hooks.Failed {
			t.Fatalf("got %+v, %v, want an error that is ErrUnavailable", got, err)
		}
		if want := "ended with exit status 7: no database, before it read anything"; !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if n := strings.Count(log.String(), "worker process ended"); n != maxDiedUnread+1 {
		t.Errorf("%d processes were started, want %d:\n%s", n, maxDiedUnread+1, log)
	}
}

// While no process can be had, time passes without the message being to blame.
func TestWorkerWithoutAFreeProcessIsUnavailable(t *testing.T) {
	t.Parallel()
	hook := newHook(t, workerHandler(t, "mixed"), setup.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { hook.Handle(ctx, hooks.Message{Body: []byte("hang")}) })
	pool, second := hook.(*workers).pool, hooktest.NewOverdue()
	hooktest.Eventually(t, "the first call to have the process", func() bool { return pool.inFlight() == 1 })
	calls.Go(func() {
		_, err := hook.Handle(second, hooks.Message{})
		if !errors.Is(err, hooks.ErrUnavailable) || !strings.Contains(err.Error(), "no process was free") {
			t.Errorf("Handle() error = %v, want that no process was free", err)
		}
		cancel()
	})
	hooktest.Eventually(t, "the second call to wait", func() bool { return pool.queued() == 1 })
	second.Pass()
	calls.Wait()
}

// queued is how many calls wait for a process.
func (p *pool) queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

func TestWorkerProcessesStayAndAreStartedWhenNeeded(t *testing.T) {
	t.Parallel()
	hook := newHook(t, workerHandler(t, "obey"), setup.Options{Concurrency: 8})
	pids := map[string]int{}
	for range 20 {
		pids[hooktest.Handle(t, hook, hooks.Message{Body: []byte("ack")}).Reason]++
	}
	if len(pids) != 1 {
		t.Errorf("20 deliveries one after the other used %d processes, want 1", len(pids))
	}
	if n := hook.(hooks.Limiter).Limit(); n != 8 {
		t.Errorf("Limit() = %d, want the concurrency", n)
	}
}

// A worker that ends itself after so many messages is no failure.
func TestWorkerThatEndsInPeaceIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, workerHandler(t, "mixed"), o)
	for range 5 {
		if got := hooktest.Handle(t, hook, hooks.Message{Body: []byte("last")}); got.Verdict != hooks.Ack {
			t.Errorf("got %+v, want Ack", got)
		}
	}
	hook.(*workers).pool.endFor = hooktest.Patience
	hook.(hooks.Closer).Close()
	if s := hook.(*workers).pool.slots[0]; s.backoff != 0 {
		t.Errorf("the last process is replaced after a rest of %v, want at once", s.backoff)
	}
	if strings.Contains(log.String(), "WARN") {
		t.Errorf("the log has warnings:\n%s", log)
	}
}

func TestWorkerRestsLongerAfterEachUselessProcess(t *testing.T) {
	t.Parallel()
	s := &slot{}
	var steps []time.Duration
	for range 9 {
		if d := s.nextBackoff(exitSummary{}); d < s.backoff/2 || d > s.backoff {
			t.Errorf("rest %v is not between half of %v and all of it", d, s.backoff)
		}
		steps = append(steps, s.backoff)
	}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(steps, want) {
		t.Errorf("rests at most %v, want %v", steps, want)
	}
	if s.nextBackoff(exitSummary{answers: 1}); s.backoff != backoffMin {
		t.Errorf("after a process that answered: %v, want %v", s.backoff, backoffMin)
	}
	if d := s.nextBackoff(exitSummary{answers: 1, clean: true}); d != 0 {
		t.Errorf("after a process that ended in peace: %v, want 0", d)
	}
}

func TestWorkers_DoNotCopyALargeBody(t *testing.T) {
	hook := newHook(t, workerHandler(t, "swallow"), setup.Options{})
	hooktest.WantNotCopied(t, hook, hook)
}
