package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/runtime/threads"
	"github.com/rsctl/rsctl/pkg/spec"
)

// limitsMode makes the re-executed test binary try out a limit; its value says
// which.
const limitsMode = "RSCTL_TEST_LIMITS"

// limited are the limits that are tried. Each runs in a process of its own, whose
// threads are nobody else's and whose limits end with it. It ends with status 0
// when all is well.
var limited = map[string]func(){
	"processes":   func() { exitOn(underProcessLimit()) },
	"descriptors": func() { exitOn(underDescriptorLimit()) },
	"threads":     func() { exitOn(manyAtATime()) },
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A process that may start no other, nor a thread, says that its handlers are
// unavailable, goes on, and runs them once it may. Root has no such limit, so the
// process is somebody else's then.
func TestLimits_OfProcessesMakeHandlersUnavailable(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, "processes")
}

func TestLimits_OfDescriptorsMakeHandlersUnavailable(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, "descriptors")
}

// A process that runs takes no thread of ours: threads count as processes do.
func TestLimits_RunningHandlersTakeNoThreads(t *testing.T) {
	t.Parallel()
	fd, err := unix.PidfdOpen(os.Getpid(), unix.PIDFD_NONBLOCK)
	if err != nil {
		t.Fatalf("this kernel has no pidfd_open, without which each handler takes a thread; test on Linux 5.10 or later: %v", err)
	}
	unix.Close(fd)
	inOwnProcess(t, "threads")
}

// inOwnProcess runs a mode as an ordinary user.
func inOwnProcess(t *testing.T, mode string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rsctl-limits") // t.TempDir belongs to this user alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary := filepath.Join(dir, "kinds.test")
	copyFile(t, os.Args[0], binary)
	work := filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(work, 0o777), os.Chmod(work, 0o777), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	ctx := hooktest.Deadline(t, hooktest.Patience)
	cmd := exec.CommandContext(ctx, binary)
	cmd.Dir = work
	cmd.Env = []string{limitsMode + "=" + mode, "PATH=/usr/bin:/bin", "TMPDIR=" + work}
	if os.Getuid() == 0 {
		const nobodyElse = 64_031 // RLIMIT_NPROC counts what a user has in all
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyElse, Gid: nobodyElse}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%.4000s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// underProcessLimit calls handlers while no process and no thread can be started.
func underProcessLimit() error {
	if err := threads.Reserve(threads.ForHandlers); err != nil {
		return err
	}
	return under(unix.RLIMIT_NPROC, 1, func(err error) bool { return errors.Is(err, syscall.EAGAIN) })
}

func underDescriptorLimit() error {
	return under(unix.RLIMIT_NOFILE, 3, func(err error) bool { return strings.Contains(err.Error(), "raise ulimit -n") })
}

// under calls handlers of both kinds, many at a time, while a limit is lowered,
// and again after that.
func under(resource int, limit uint64, expected func(error) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), hooktest.Patience/2) // its timer makes the poller, which needs a descriptor
	defer cancel()
	each := map[string]hooks.Hook{}
	for kind, script := range map[spec.HandlerKind]string{
		spec.Exec:   "exit 0",
		spec.Worker: `while read -r line; do id=${line#*\"id\":\"}; echo "{\"id\":\"${id%%\"*}\",\"outcome\":\"ack\"}"; done`,
	} {
		hook, err := New(&spec.Handler{
			Kind: kind, Command: hooktest.Texts("/bin/sh", "-c", script), Dir: ".", KillGrace: time.Second, Pipeline: 1, Processes: 16,
		}, setup.Options{})
		if err != nil {
			return err
		}
		if c, ok := hook.(hooks.Closer); ok {
			defer c.Close()
		}
		each[string(kind)] = hook
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(resource, &before); err != nil {
		return err
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
		return err
	}
	lowered := atOnce(ctx, each, func(o hooks.Outcome, err error) error {
		if !errors.Is(err, hooks.ErrUnavailable) || !expected(err) {
			return fmt.Errorf("under the limit: %+v, %v, want that it is unavailable because of the limit", o, err)
		}
		return nil
	})
	if err := unix.Setrlimit(resource, &before); err != nil {
		return err
	}
	return errors.Join(lowered, atOnce(ctx, each, func(o hooks.Outcome, err error) error {
		if err != nil || o.Verdict != hooks.Ack {
			return fmt.Errorf("after the limit: %+v, %v, want an ack", o, err)
		}
		return nil
	}))
}

// atOnce calls each hook 64 times at once and judges what comes of it.
func atOnce(ctx context.Context, each map[string]hooks.Hook, judge func(hooks.Outcome, error) error) error {
	var mu sync.Mutex
	var calls sync.WaitGroup
	var wrong error
	for kind, hook := range each {
		for range 64 {
			calls.Go(func() {
				o, err := hook.Handle(ctx, hooks.Message{Body: []byte("x")})
				if err := judge(o, err); err != nil {
					mu.Lock()
					defer mu.Unlock()
					wrong = fmt.Errorf("%s %w", kind, err)
				}
			})
		}
	}
	calls.Wait()
	return wrong
}

// manyAtATime runs many handlers and looks at its own threads.
func manyAtATime() error {
	const many = 60
	h := &spec.Handler{Kind: spec.Exec, Command: hooktest.Texts("/bin/sh", "-c", `: > started.$$; exec sleep 600`), Dir: ".", KillGrace: time.Second}
	hook, err := New(h, setup.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), hooktest.Patience/2)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for range many {
		calls.Go(func() { _, _ = hook.Handle(ctx, hooks.Message{}) })
	}
	for started := 0; started < many; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d handlers have started", started, many)
		}
		files, err := filepath.Glob("started.*")
		if err != nil {
			return err
		}
		started = len(files)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "Threads:")
	line, _, _ := strings.Cut(rest, "\n")
	if n, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || n >= many/2 {
		return fmt.Errorf("%d handlers run, and this process has %d threads (%v)", many, n, err)
	}
	return nil
}
