package kinds

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
)

func workerUnderTest(t *testing.T) kindUnderTest {
	build := func(mode string) hooks.Hook {
		return newHook(t, workerHandler(t, mode), Options{Concurrency: 4})
	}
	absent := execHandler(t, "./gone.py")
	absent.Kind = "worker"
	return kindUnderTest{
		answers: build("obey"),
		hangs:   build("hang"),
		floods:  build("flood stderr"),
		babbles: build("babble"),
		absent:  newHook(t, absent, Options{}),
	}
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
			o, log := logged()
			hook := newHook(t, workerHandler(t, tt.mode), o)
			for range 2 {
				ctx := deadline(t, patience)
				if strings.HasPrefix(tt.reason, "timed out") {
					ctx = overdueOnceTaken(t, hook)
				}
				got, err := hook.Handle(ctx, hooks.Message{MessageID: "m"})
				if err != nil || got.Verdict != hooks.Failed {
					t.Fatalf("got %+v, %v, want Failed", got, err)
				}
				wantReason(t, got, tt.reason)
			}
			if n := strings.Count(log.String(), "worker process ended"); n != 2 {
				t.Errorf("%d log lines say that a process ended, want 2:\n%s", n, log)
			}
		})
	}
}

func TestWorkerThatAnswersTwiceIsReplaced(t *testing.T) {
	t.Parallel()
	o, log := logged()
	hook := newHook(t, workerHandler(t, "twice"), o)
	for range 3 { // the second answer may come while the next request is in flight
		got, err := hook.Handle(deadline(t, patience), hooks.Message{})
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
	o, log := logged()
	hook := newHook(t, workerHandler(t, "close stdin"), o)
	if got := handleWith(t, hook, hooks.Message{}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack", got)
	}
	got := handleWith(t, hook, hooks.Message{})
	if got.Verdict != hooks.Failed {
		t.Errorf("got %+v, want Failed", got)
	}
	wantReason(t, got, "closed its standard input and went on")
	if got := handleWith(t, hook, hooks.Message{}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack from a new process; log:\n%s", got, log)
	}
}

func TestWorkerCrashFailsOnlyWhatWasInFlight(t *testing.T) {
	t.Parallel()
	o, log := logged()
	o.Concurrency = 4
	hook := newHook(t, workerHandler(t, "mixed"), o)
	var done sync.WaitGroup
	for i := range 40 {
		done.Go(func() {
			body, want := "fine", hooks.Ack
			if i%10 == 0 {
				body, want = "crash", hooks.Failed
			}
			got, err := hook.Handle(deadline(t, patience), hooks.Message{Body: []byte(body)})
			if err != nil || got.Verdict != want {
				t.Errorf("%s: got %+v, %v, want %v", body, got, err, want)
			}
			if want == hooks.Failed {
				wantReason(t, got, "exit status 3: out of ideas")
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
			hook := newHook(t, h, Options{Concurrency: 4})
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					got, err := hook.Handle(deadline(t, patience), hooks.Message{})
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
	o, log := logged()
	hook, ctx := newHook(t, h, o), newOverdue()
	var calls sync.WaitGroup
	calls.Go(func() {
		got, err := hook.Handle(ctx, hooks.Message{})
		if err != nil {
			t.Error(err)
		}
		wantReason(t, got, "timed out after 30s")
	})
	calls.Go(func() {
		got, err := hook.Handle(deadline(t, patience), hooks.Message{})
		if err != nil || got.Verdict != hooks.Failed {
			t.Errorf("got %+v, %v, want Failed", got, err)
		}
		wantReason(t, got, "stopped: a call timed out after 30s")
	})
	eventually(t, "both calls to be in the process", func() bool {
		_, err := os.Stat(h.Dir + "/ready")
		return err == nil && hook.(*workers).pool.inFlight() == 2
	})
	ctx.pass()
	calls.Wait()
	wantGone(t, h.Dir+"/pids")
	if t.Failed() {
		t.Log(log)
	}
}

// overdueOnceTaken returns a context whose time is up once the hook's first
// process has a call.
func overdueOnceTaken(t *testing.T, hook hooks.Hook) context.Context {
	ctx := newOverdue()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer ctx.pass()
		eventually(t, "a process to have the call", func() bool { return hook.(*workers).pool.inFlight() == 1 })
	})
	t.Cleanup(waiting.Wait)
	return ctx
}

// inFlight is how many calls the first process has.
func (p *workerPool) inFlight() int {
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
	o, log := logged()
	hook := newHook(t, workerHandler(t, "dead at start"), o)
	for range 2 {
		got, err := hook.Handle(deadline(t, patience), hooks.Message{})
		if !errors.Is(err, hooks.ErrUnavailable) || got.Verdict != hooks.Failed {
			t.Fatalf("got %+v, %v, want an error that is ErrUnavailable", got, err)
		}
		if want := "ended with exit status 7: no database, before it read anything"; !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if n := strings.Count(log.String(), "worker process ended"); n != maxStillborn+1 {
		t.Errorf("%d processes were started, want %d:\n%s", n, maxStillborn+1, log)
	}
}

// While no process can be had, time passes without the message being to blame.
func TestWorkerWithoutAFreeProcessIsUnavailable(t *testing.T) {
	t.Parallel()
	hook := newHook(t, workerHandler(t, "mixed"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { hook.Handle(ctx, hooks.Message{Body: []byte("hang")}) })
	pool, second := hook.(*workers).pool, newOverdue()
	eventually(t, "the first call to have the process", func() bool { return pool.inFlight() == 1 })
	calls.Go(func() {
		_, err := hook.Handle(second, hooks.Message{})
		if !errors.Is(err, hooks.ErrUnavailable) || !strings.Contains(err.Error(), "no process was free") {
			t.Errorf("Handle() error = %v, want that no process was free", err)
		}
		cancel()
	})
	eventually(t, "the second call to wait", func() bool { return pool.queued() == 1 })
	second.pass()
	calls.Wait()
}

// queued is how many calls wait for a process.
func (p *workerPool) queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

func TestWorkerProcessesStayAndAreStartedWhenNeeded(t *testing.T) {
	t.Parallel()
	hook := newHook(t, workerHandler(t, "obey"), Options{Concurrency: 8})
	pids := map[string]int{}
	for range 20 {
		pids[handleWith(t, hook, hooks.Message{Body: []byte("ack")}).Reason]++
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
	o, log := logged()
	hook := newHook(t, workerHandler(t, "mixed"), o)
	for range 5 {
		if got := handleWith(t, hook, hooks.Message{Body: []byte("last")}); got.Verdict != hooks.Ack {
			t.Errorf("got %+v, want Ack", got)
		}
	}
	hook.(*workers).pool.endFor = patience
	hook.(hooks.Closer).Close()
	if s := hook.(*workers).pool.slots[0]; s.rest != 0 {
		t.Errorf("the last process is replaced after a rest of %v, want at once", s.rest)
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
		if d := s.restAfter(life{}); d < s.rest/2 || d > s.rest {
			t.Errorf("rest %v is not between half of %v and all of it", d, s.rest)
		}
		steps = append(steps, s.rest)
	}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(steps, want) {
		t.Errorf("rests at most %v, want %v", steps, want)
	}
	if s.restAfter(life{answers: 1}); s.rest != restMin {
		t.Errorf("after a process that answered: %v, want %v", s.rest, restMin)
	}
	if d := s.restAfter(life{answers: 1, clean: true}); d != 0 {
		t.Errorf("after a process that ended in peace: %v, want 0", d)
	}
}
