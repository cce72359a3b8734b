package kinds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// endFor is how long a process may take to end by itself after the end of its
// input. Tests make it longer where a process is known to end.
const endFor = time.Second

// process is one worker that runs.
type process struct {
	pool *workerPool
	slot *slot
	pid  int

	stdin, stdout *os.File
	errors        *os.File
	stderr        *workerLog

	// ctx is done, with a cause, when the process group is to end.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopper *stopper
	exited  chan struct{} // closed when the leader has ended
	done    chan struct{} // closed when all is over; why is then set
	why     string
	busy    sync.WaitGroup

	mu      sync.Mutex
	calls   map[uint64]*call // by id
	lastID  uint64
	out     payload // lines for the process that the writer has not taken
	queued  int64   // bytes of all lines so far
	answers int
	last    bool          // no line follows
	wake    chan struct{} // tells the writer
	written int64         // of the writer, to be read after its end
	taken   []answered    // of the reader, to be handed on
}

// A stopCause says why rsctl ended a process.
type stopCause struct {
	text        string
	interrupted bool // nothing is wrong with the process
}

func (c *stopCause) Error() string { return c.text }

var (
	errEnded  = errors.New("ended by itself")
	errClosed = &stopCause{text: "did not end at the end of its input"}
)

// startProcess starts the command. Its goroutines start with begin.
func startProcess(ctx context.Context, p *workerPool, s *slot) (*process, error) {
	c := p.cmd
	dir, err := c.workDir()
	if err != nil {
		return nil, err
	}
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	proc := &process{
		pool: p, slot: s, exited: make(chan struct{}), done: make(chan struct{}),
		calls: map[uint64]*call{}, wake: make(chan struct{}, 1),
	}
	theirs, err := proc.pipes()
	defer closeAll(theirs)
	if err == nil {
		env := append(c.env[:len(c.env):len(c.env)], "PWD="+dir, "RSCTL_QUEUE="+c.opts.Queue)
		proc.pid, err = c.spawn(ctx, path, &syscall.ProcAttr{
			Dir: dir, Env: env, Files: theirs, Sys: &syscall.SysProcAttr{Setpgid: true},
		})
	}
	if err != nil {
		proc.closeFiles()
		return nil, c.explainStart(path, err)
	}
	proc.ctx, proc.cancel = context.WithCancelCause(context.Background())
	proc.stopper = newStopper(proc.ctx, proc.pid, c.grace)
	proc.stderr = newWorkerLog(c, proc.pid)
	return proc, nil
}

// pipes makes the three pipes and returns the process's ends.
func (p *process) pipes() (theirs []uintptr, err error) {
	for i, file := range []**os.File{&p.stdin, &p.stdout, &p.errors} {
		r, w, err := newPipe()
		if err != nil {
			return theirs, err
		}
		if i == 0 {
			r, w = w, r
		}
		*file = pollable(r)
		theirs = append(theirs, uintptr(w))
	}
	return theirs, nil
}

func closeAll(fds []uintptr) {
	for _, fd := range fds {
		syscall.Close(int(fd))
	}
}

func (p *process) closeFiles() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.errors} {
		if f != nil {
			f.Close()
		}
	}
}

// begin starts what serves the process; each part ends with it. Calls may have
// been queued before.
func (p *process) begin() {
	p.busy.Go(p.write)
	p.busy.Go(p.read)
	p.busy.Go(func() { drain(p.errors, p.stderr) })
	go p.live()
}

// submit queues a request. It reports false when the process takes no more.
func (p *process) submit(c *call) bool {
	p.mu.Lock()
	if p.last || p.ctx.Err() != nil {
		p.mu.Unlock()
		return false
	}
	p.lastID++
	c.start = p.queued
	before := p.out.length()
	p.out.line(p.lastID, &c.line)
	p.queued += p.out.length() - before
	p.calls[p.lastID] = c
	p.mu.Unlock()
	p.tellWriter()
	return true
}

// end stops the process group because of cause; the first cause counts.
func (p *process) end(cause error) {
	p.pool.retire(p)
	p.cancel(cause)
}

// endInput lets the process end by itself, and stops it when it does not.
func (p *process) endInput() {
	p.pool.retire(p)
	p.mu.Lock()
	p.last = true
	p.mu.Unlock()
	p.tellWriter()
	time.AfterFunc(p.pool.endFor, func() { p.cancel(errClosed) }) // too late for a process that is gone
}

// live waits for the end of the process and settles what it leaves: the rest of
// its group is ended, answers that it wrote are still read, and the other calls
// fail.
func (p *process) live() {
	defer p.pool.alive.Done()
	status, err := waitFor(p.pid)
	close(p.exited)
	p.end(errEnded)
	p.stopper.finish()
	p.mu.Lock()
	p.last = true
	p.mu.Unlock()
	p.tellWriter()
	now := time.Now()
	p.stdin.SetWriteDeadline(now)
	p.stdout.SetReadDeadline(now.Add(drainFor))
	p.errors.SetReadDeadline(now.Add(drainFor))
	p.busy.Wait()
	p.stderr.end()
	seen := p.written - unreadBytes(p.stdin)
	p.closeFiles()
	p.bury(status, err, seen)
}

// unreadBytes is how much of what a pipe was given nobody has read.
func unreadBytes(f *os.File) int64 {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), askUnread) })
	return int64(n)
}

// bury reports the end of the process and gives each open call its result. seen
// is how many bytes of its input the process has read.
func (p *process) bury(status syscall.WaitStatus, waitErr error, seen int64) {
	cause := context.Cause(p.ctx)
	byItself := cause == errEnded
	p.why = p.describe(cause, status, waitErr)
	l := life{
		answers:   p.answers,
		stillborn: byItself && seen <= 0 && p.answers == 0, // its call may not even have been queued yet
		clean:     byItself && status.Exited() && status.ExitStatus() == 0,
	}
	open, failed := p.calls, 0
	for _, c := range open {
		if !byItself || c.start < seen {
			failed++
		}
	}
	l.clean = l.clean && failed == 0
	rest, broken := p.pool.replace(p, l)
	p.report(cause, l, failed, rest)
	close(p.done)
	for _, c := range open {
		switch {
		case !byItself || c.start < seen:
			c.done <- result{outcome: hooks.Outcome{Reason: joinReason("worker "+p.why, "")}}
		case broken:
			c.done <- result{err: p.pool.cmd.unavailable(fmt.Errorf("%s, before it read anything", p.why))}
		default:
			c.done <- result{unread: true}
		}
	}
}

// describe says in a few words why the process is gone.
func (p *process) describe(cause error, status syscall.WaitStatus, waitErr error) string {
	switch {
	case cause != errEnded:
		return "stopped: " + cause.Error()
	case waitErr != nil:
		return "lost: " + waitErr.Error()
	}
	return joinReason("ended with "+describeEnd(status), p.stderr.lastLine())
}

// report logs the end of a process, with how many calls fail with it.
func (p *process) report(cause error, l life, failed int, rest time.Duration) {
	level := slog.LevelWarn
	var stop *stopCause
	switch {
	case p.closing() && failed == 0 && cause == errEnded, l.clean:
		level = slog.LevelDebug
	case errors.As(cause, &stop) && stop.interrupted:
		level = slog.LevelInfo
	}
	p.pool.cmd.log(level, "worker process ended", nil,
		slog.Int("pid", p.pid), slog.String("reason", p.why), slog.Int("answered", l.answers),
		slog.Int("failed", failed), slog.Duration("restart_after", rest.Round(time.Millisecond)))
}

func (p *process) closing() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.pool.closed
}
