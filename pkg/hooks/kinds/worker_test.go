package kinds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
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
		reason string
	}{
		{"crash", "worker ended with exit status 3"},
		{"garbage", `worker stopped: printed a line that is no JSON object: all \x1b[2J good`},
		{"unknown id", "worker stopped: answered request 4711, which it never got"},
		{"endless line", `worker stopped: printed a line of more than 1048576 bytes, beginning with xxx`},
		{"close stdout", "worker stopped: closed its standard output and went on"},
		{"never read", "timed out after 30s"},
		{"hang", "timed out after 30s"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o, log := logged()
			hook := newHook(t, workerHandler(t, tt.mode), o)
			for range 2 {
				got, err := hook.Handle(deadline(t, 2*time.Second), hooks.Message{MessageID: "m"})
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
		got, err := hook.Handle(deadline(t, 10*time.Second), hooks.Message{})
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
			got, err := hook.Handle(deadline(t, time.Minute), hooks.Message{Body: []byte(body)})
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
					got, err := hook.Handle(deadline(t, 30*time.Second), hooks.Message{})
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
	h := shWorker(t, `trap '' TERM; sleep 300 & echo $$ > group; echo $! >> group; read -r line; wait`)
	h.KillGrace, h.Processes, h.Pipeline = 100*time.Millisecond, 1, 2
	o, log := logged()
	hook := newHook(t, h, o)
	var calls sync.WaitGroup
	calls.Go(func() {
		got, err := hook.Handle(deadline(t, 500*time.Millisecond), hooks.Message{})
		if err != nil {
			t.Error(err)
		}
		wantReason(t, got, "timed out after 30s")
	})
	calls.Go(func() {
		got, err := hook.Handle(deadline(t, time.Minute), hooks.Message{})
		if err != nil || got.Verdict != hooks.Failed {
			t.Errorf("got %+v, %v, want Failed", got, err)
		}
		wantReason(t, got, "stopped: a call timed out after 30s")
	})
	calls.Wait()
	for pid := range strings.FieldsSeq(readFile(t, h.Dir+"/group")) {
		var n int
		fmt.Sscan(pid, &n)
		if err := syscall.Kill(n, 0); !errors.Is(err, syscall.ESRCH) && !zombie(n) {
			t.Errorf("process %d is still there: %v\n%s", n, err, log)
		}
	}
}

// zombie reports whether a process is only waiting to be collected by init.
func zombie(pid int) bool {
	out, err := readProc(pid)
	return err == nil && strings.Contains(out, "State:\tZ")
}

func TestWorkerDeadAtStartIsUnavailable(t *testing.T) {
	t.Parallel()
	o, log := logged()
	hook := newHook(t, workerHandler(t, "dead at start"), o)
	for range 2 {
		got, err := hook.Handle(deadline(t, time.Minute), hooks.Message{})
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
	started := make(chan struct{})
	calls.Go(func() {
		close(started)
		hook.Handle(ctx, hooks.Message{Body: []byte("hang")})
	})
	<-started
	w := hook.(*workers)
	for w.pool.free() {
		time.Sleep(time.Millisecond)
	}
	_, err := hook.Handle(deadline(t, 50*time.Millisecond), hooks.Message{})
	if !errors.Is(err, hooks.ErrUnavailable) || !strings.Contains(err.Error(), "no process was free") {
		t.Errorf("Handle() error = %v, want that no process was free", err)
	}
	cancel()
	calls.Wait()
}

func (p *workerPool) free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pick() != nil
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
	began := time.Now()
	for range 5 {
		if got := handleWith(t, hook, hooks.Message{Body: []byte("last")}); got.Verdict != hooks.Ack {
			t.Errorf("got %+v, want Ack", got)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
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

func readProc(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return string(b), err
}
