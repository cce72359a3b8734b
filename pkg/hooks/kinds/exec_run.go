package kinds

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// pipeSafe is what an empty pipe takes without a reader, on every system
	// and also when the user's pipe memory is used up.
	pipeSafe = 4096
	// drainFor is how long output is read after the process has ended: a child
	// that it left behind may hold the pipes open for ever.
	drainFor = 200 * time.Millisecond
)

// running is one process and its five pipes.
type running struct {
	pid   int
	child []uintptr // the process's ends, by descriptor
	feeds []feed
	reads []read

	stdout, stderr *outputLog
	answer         *head
	reply          *head // standard output, in place of the log; nil: no reply is wanted
	busy           sync.WaitGroup
}

// A feed is data for the process; w is nil once all of it is in the pipe.
type feed struct {
	w    *os.File
	data payload
}

// A read is output of the process and what takes it.
type read struct {
	r  *os.File
	to taker
}

// A taker is handed output piece by piece and must not keep p.
type taker interface{ take(p []byte) }

// connect makes the pipes.
func (c *command) connect(in *input) (*running, error) {
	r := &running{
		stdout: &outputLog{c: c, m: in.m, stream: "stdout"},
		stderr: &outputLog{c: c, m: in.m, stream: "stderr"},
		answer: &head{limit: in.answer},
	}
	var stdout taker = r.stdout
	if c.h.Reply {
		r.reply = &head{limit: maxReply}
		stdout = r.reply
	}
	err := errors.Join(
		r.input(in.stdin), r.output(stdout), r.output(r.stderr),
		r.input(in.metadata), r.output(r.answer),
	)
	if err != nil {
		r.abandon()
		return nil, err
	}
	return r, nil
}

// input adds a descriptor from which the process reads data and then EOF. What
// fits into the pipe is written at once, which saves a goroutine.
func (r *running) input(data payload) error {
	pr, pw, err := newPipe()
	if err != nil {
		return err
	}
	r.child = append(r.child, uintptr(pr))
	if data.length() > pipeSafe {
		r.feeds = append(r.feeds, feed{pollable(pw), data})
		return nil
	}
	if len(data.buf) > 0 {
		_, err = syscall.Write(pw, data.buf) // large bodies are beside it, and there is none
	}
	return errors.Join(err, syscall.Close(pw))
}

// output adds a descriptor that the process may write to.
func (r *running) output(to taker) error {
	pr, pw, err := newPipe()
	if err != nil {
		return err
	}
	r.child = append(r.child, uintptr(pw))
	r.reads = append(r.reads, read{pollable(pr), to})
	return nil
}

// pollable is our end of a pipe: waiting for it takes no thread.
func pollable(fd int) *os.File {
	syscall.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "|")
}

// attr makes the process the leader of its own group, so that a timeout ends
// everything it started, and a Ctrl-C at a terminal reaches only rsctl.
func (r *running) attr(dir string, env []string) *syscall.ProcAttr {
	return &syscall.ProcAttr{Dir: dir, Env: env, Files: r.child, Sys: &syscall.SysProcAttr{Setpgid: true}}
}

// abandon closes every pipe of a process that did not start.
func (r *running) abandon() {
	r.closeTheirs()
	r.closeOurs()
}

func (r *running) closeOurs() {
	for _, f := range r.feeds {
		f.w.Close()
	}
	for _, in := range r.reads {
		in.r.Close()
	}
}

func (r *running) closeTheirs() {
	for _, fd := range r.child {
		syscall.Close(int(fd))
	}
	r.child = nil
}

// begin moves data once the process runs.
func (r *running) begin() {
	r.closeTheirs()
	for _, f := range r.feeds {
		r.busy.Go(func() {
			_, _, _ = f.data.writeTo(f.w, nil) // a process need not read its input
			f.w.Close()
		})
	}
	for _, in := range r.reads {
		r.busy.Go(func() { drain(in.r, in.to) })
	}
}

// wait returns how the process ended and whether it was stopped because ctx
// was done. After it, no goroutine of this process is left.
func (r *running) wait(ctx context.Context, grace time.Duration) (status syscall.WaitStatus, stopped bool, err error) {
	s := newStopper(ctx, r.pid, grace)
	status, err = waitFor(r.pid)
	stopped = s.finish()
	for _, in := range r.reads {
		in.r.SetReadDeadline(time.Now().Add(drainFor))
	}
	for _, f := range r.feeds {
		f.w.Close()
	}
	r.busy.Wait()
	r.closeOurs()
	r.stdout.end()
	r.stderr.end()
	return status, stopped, err
}

// waitBlocking waits for the end of a child of ours, with a thread of its own.
func waitBlocking(pid int) (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, err
		}
	}
}
