package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

// endFor is how long a process may take to end by itself after the end of its
// input. Tests make it longer where a process is known to end.
const endFor = time.Second

// A child is one worker process that runs.
type child struct {
	pool *pool
	slot *slot
	pid  int

	stdin, stdout *os.File
	errors        *os.File
	stderr        *process.WindowLog

	// ctx is done, with a cause, when the process group is to end.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopper *process.Stopper
	exited  chan struct{} // closed when the leader has ended
	done    chan struct{} // closed when all is over; why is then set
	why     string
	busy    sync.WaitGroup

	mu        sync.Mutex
	calls     map[uint64]*call // by id
	lastID    uint64
	out       message.Payload // lines for the process that the writer has not taken
	queued    int64           // bytes of all lines so far
	answers   int
	inputOver bool          // no line follows
	wake      chan struct{} // tells the writer
	written   int64         // of the writer, to be read after its end
	taken     []answered    // of the reader, to be handed on
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
func startProcess(ctx context.Context, p *pool, s *slot) (*child, error) {
	c := p.cmd
	dir, path, err := c.Locate()
	if err != nil {
		return nil, err
	}
	proc := &child{
		pool: p, slot: s, exited: make(chan struct{}), done: make(chan struct{}),
		calls: map[uint64]*call{}, wake: make(chan struct{}, 1),
	}
	childEnds, err := proc.pipes()
	defer process.CloseAll(childEnds)
	if err == nil {
		env := append(slices.Clip(c.Env), "PWD="+dir, "RSCTL_QUEUE="+p.queue)
		proc.pid, err = c.Spawn(ctx, path, dir, env, childEnds)
	}
	if err != nil {
		proc.closeFiles()
		return nil, c.ExplainStart(path, err)
	}
	proc.ctx, proc.cancel = context.WithCancelCause(context.Background())
	proc.stopper = process.NewStopper(proc.ctx, proc.pid, p.grace)
	proc.stderr = process.NewWindowLog(c, proc.pid)
	return proc, nil
}

// pipes makes the three pipes and returns the process's ends.
func (p *child) pipes() (childEnds []uintptr, err error) {
	for i, file := range []**os.File{&p.stdin, &p.stdout, &p.errors} {
		r, w, err := process.NewPipe()
		if err != nil {
			return childEnds, err
		}
		if i == 0 {
			r, w = w, r
		}
		*file = process.Pollable(r)
		childEnds = append(childEnds, uintptr(w))
	}
	return childEnds, nil
}

func (p *child) closeFiles() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.errors} {
		if f != nil {
			f.Close()
		}
	}
}

// begin starts what serves the process; each part ends with it. Calls may have
// been queued before.
func (p *child) begin() {
	p.busy.Go(p.write)
	p.busy.Go(p.read)
	p.busy.Go(func() { process.Drain(p.errors, p.stderr) })
	go p.awaitEnd()
}

// submit queues a request. It reports false when the process takes no more.
func (p *child) submit(c *call) bool {
	p.mu.Lock()
	if p.inputOver || p.ctx.Err() != nil {
		p.mu.Unlock()
		return false
	}
	p.lastID++
	c.start = p.queued
	before := p.out.Length()
	p.out.Line(p.lastID, &c.line)
	p.queued += p.out.Length() - before
	p.calls[p.lastID] = c
	p.mu.Unlock()
	p.tellWriter()
	return true
}

// end stops the process group because of cause; the first cause counts.
func (p *child) end(cause error) {
	p.pool.retire(p)
	p.cancel(cause)
}

// endInput lets the process end by itself, and stops it when it does not.
func (p *child) endInput() {
	p.pool.retire(p)
	p.mu.Lock()
	p.inputOver = true
	p.mu.Unlock()
	p.tellWriter()
	time.AfterFunc(p.pool.endFor, func() { p.cancel(errClosed) }) // too late for a process that is gone
}

// awaitEnd waits for the end of the process and settles what it leaves: the rest of
// its group is ended, answers that it wrote are still read, and the other calls
// fail.
func (p *child) awaitEnd() {
	defer p.pool.alive.Done()
	status, err := process.WaitFor(p.pid)
	close(p.exited)
	p.end(errEnded)
	p.stopper.Finish()
	p.mu.Lock()
	p.inputOver = true
	p.mu.Unlock()
	p.tellWriter()
	now := time.Now()
	p.stdin.SetWriteDeadline(now)
	p.stdout.SetReadDeadline(now.Add(process.DrainFor))
	p.errors.SetReadDeadline(now.Add(process.DrainFor))
	p.busy.Wait()
	p.stderr.End()
	seen := p.written - process.Unread(p.stdin)
	p.closeFiles()
	p.reportExit(status, err, seen)
}

// reportExit reports the end of the process and gives each open call its result. seen
// is how many bytes of its input the process has read.
func (p *child) reportExit(status syscall.WaitStatus, waitErr error, seen int64) {
	cause := context.Cause(p.ctx)
	byItself := cause == errEnded
	p.why = p.describe(cause, status, waitErr)
	l := exitSummary{
		answers:    p.answers,
		diedUnread: byItself && seen <= 0 && p.answers == 0, // its call may not even have been queued yet
		clean:      byItself && status.Exited() && status.ExitStatus() == 0,
	}
	open, lost := p.calls, 0
	for _, c := range open {
		if !byItself || c.start < seen {
			lost++
		}
	}
	l.clean = l.clean && lost == 0
	pause, broken := p.pool.replace(p, l)
	p.report(cause, l, lost, pause)
	close(p.done)
	for _, c := range open {
		switch {
		case !byItself || c.start < seen:
			c.done <- failed(message.JoinReason("worker "+p.why, ""))
		case broken:
			c.done <- result{err: p.pool.cmd.Unavailable(fmt.Errorf("%s, before it read anything", p.why))}
		default:
			c.done <- result{unread: true}
		}
	}
}

// describe says in a few words why the process is gone.
func (p *child) describe(cause error, status syscall.WaitStatus, waitErr error) string {
	switch {
	case cause != errEnded:
		return "stopped: " + cause.Error()
	case waitErr != nil:
		return "lost: " + waitErr.Error()
	}
	return message.JoinReason("ended with "+process.DescribeEnd(status), p.stderr.LastLine())
}

// report logs the end of a process, with how many calls are lost with it.
func (p *child) report(cause error, l exitSummary, lost int, pause time.Duration) {
	level := slog.LevelWarn
	var stop *stopCause
	switch {
	case p.closing() && lost == 0 && cause == errEnded, l.clean:
		level = slog.LevelDebug
	case errors.As(cause, &stop) && stop.interrupted:
		level = slog.LevelInfo
	}
	p.pool.cmd.Log(level, "worker process ended", nil,
		slog.Int("pid", p.pid), slog.String("reason", p.why), slog.Int("answered", l.answers),
		slog.Int("failed", lost), slog.Duration("restart_after", pause.Round(time.Millisecond)))
}

func (p *child) closing() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.pool.closed
}
