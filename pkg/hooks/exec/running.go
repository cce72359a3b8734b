package exec

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

// running is one process and its five pipes.
type running struct {
	pid       int
	childEnds []uintptr // the process's ends, by descriptor
	feeds     []feed
	reads     []read

	stdout, stderr *process.OutputLog
	answer         *process.BoundedBuffer
	reply          *process.BoundedBuffer // standard output, in place of the log; nil: no reply is wanted
	busy           sync.WaitGroup
}

// A feed is data for the process; w is nil once all of it is in the pipe.
type feed struct {
	w    *os.File
	data message.Payload
}

// A read is output of the process and what takes it.
type read struct {
	r  *os.File
	to process.Taker
}

// connect makes the pipes.
func (c *command) connect(in *input) (*running, error) {
	r := &running{
		stdout: process.NewOutputLog(c.cmd, "stdout", in.m),
		stderr: process.NewOutputLog(c.cmd, "stderr", in.m),
		answer: &process.BoundedBuffer{Limit: in.answer},
	}
	var stdout process.Taker = r.stdout
	if c.h.Reply {
		r.reply = &process.BoundedBuffer{Limit: message.MaxReply}
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
func (r *running) input(data message.Payload) error {
	pr, pw, err := process.NewPipe()
	if err != nil {
		return err
	}
	r.childEnds = append(r.childEnds, uintptr(pr))
	if data.Length() > process.PipeSafe {
		r.feeds = append(r.feeds, feed{process.Pollable(pw), data})
		return nil
	}
	if data.Length() > 0 {
		_, err = syscall.Write(pw, data.Bytes())
	}
	return errors.Join(err, syscall.Close(pw))
}

// output adds a descriptor that the process may write to.
func (r *running) output(to process.Taker) error {
	pr, pw, err := process.NewPipe()
	if err != nil {
		return err
	}
	r.childEnds = append(r.childEnds, uintptr(pw))
	r.reads = append(r.reads, read{process.Pollable(pr), to})
	return nil
}

// abandon closes every pipe of a process that did not start.
func (r *running) abandon() {
	r.closeChildEnds()
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

func (r *running) closeChildEnds() {
	process.CloseAll(r.childEnds)
	r.childEnds = nil
}

// begin moves data once the process runs.
func (r *running) begin() {
	r.closeChildEnds()
	for _, f := range r.feeds {
		r.busy.Go(func() {
			_, _, _ = f.data.Send(f.w, nil) // a process need not read its input
			f.w.Close()
		})
	}
	for _, in := range r.reads {
		r.busy.Go(func() { process.Drain(in.r, in.to) })
	}
}

// wait returns how the process ended and whether it was stopped because ctx
// was done. After it, no goroutine of this process is left.
func (r *running) wait(ctx context.Context, grace time.Duration) (status syscall.WaitStatus, stopped bool, err error) {
	s := process.NewStopper(ctx, r.pid, grace)
	status, err = process.WaitFor(r.pid)
	stopped = s.Finish()
	for _, in := range r.reads {
		in.r.SetReadDeadline(time.Now().Add(process.DrainFor))
	}
	for _, f := range r.feeds {
		f.w.Close()
	}
	r.busy.Wait()
	r.closeOurs()
	r.stdout.End()
	r.stderr.End()
	return status, stopped, err
}
