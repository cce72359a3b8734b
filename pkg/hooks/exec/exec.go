// Package exec is the kind of hook that runs a command for each delivery, or for
// each batch. The process gets the body on its standard input and metadata in its
// environment and on descriptor 3; it answers by its exit code or on descriptor 4.
// A call returns when its process group is gone.
package exec

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// The exit codes with a meaning of their own, from sysexits.h. Every other
// code than 0 is a retry.
const (
	exDataErr  = 65
	exTempFail = 75
)

// maxAnswer bounds an answer on descriptor 4, and each line of one to a batch.
const maxAnswer = 4 << 10

// A command is a hook that runs one process per delivery. The process gets the body on stdin,
// metadata in its environment and on descriptor 3, and answers by its exit code
// or by a line on descriptor 4.
type command struct {
	h    *spec.Handler
	cmd  *process.Command
	warn *rate.Sometimes
}

// New builds the hook of an exec handler. It starts nothing.
func New(h *spec.Handler, o setup.Options) (hooks.Hook, error) {
	cmd, err := process.New(h, o.WithDefaults(h.Dir))
	if err != nil {
		return nil, err
	}
	return &command{h: h, cmd: cmd, warn: &rate.Sometimes{Interval: time.Minute}}, nil
}

// Handle implements [hooks.Hook].
func (c *command) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: message.StopReason(ctx, c.h.Timeout)}, nil
	}
	e, err := c.run(ctx, c.input(&m))
	switch {
	case err != nil:
		return hooks.Outcome{}, err
	case e.stopped != "":
		return hooks.Outcome{Reason: e.stopped}, nil
	}
	return withReply(c.outcome(e.status, e.running), e.reply), nil
}

// ended is a process that is gone.
type ended struct {
	*running
	status  syscall.WaitStatus
	stopped string // why it was stopped; "": it has ended by itself
}

// run starts a process and waits for its end.
func (c *command) run(ctx context.Context, in *input) (ended, error) {
	r, err := c.start(ctx, in)
	if err != nil {
		return ended{}, err
	}
	status, stopped, err := r.wait(ctx, c.h.KillGrace)
	if err != nil {
		return ended{}, c.cmd.Unavailable(err)
	}
	e := ended{running: r, status: status}
	if stopped {
		e.stopped = message.JoinReason(message.StopReason(ctx, c.h.Timeout), r.stderr.LastLine())
	}
	return e, nil
}

// withReply adds what an acknowledging process has written to its standard
// output. A cut reply would be a wrong one.
func withReply(o hooks.Outcome, reply *process.BoundedBuffer) hooks.Outcome {
	switch {
	case reply == nil || o.Verdict != hooks.Ack:
		return o
	case reply.Overflown():
		return hooks.Outcome{Reason: fmt.Sprintf("the reply on standard output is longer than %d bytes", reply.Limit)}
	}
	o.Reply = append([]byte{}, reply.Bytes()...)
	return o
}

// outcome reads the answer on descriptor 4 and, without one, how the process
// ended.
func (c *command) outcome(status syscall.WaitStatus, r *running) hooks.Outcome {
	if len(r.answer.Bytes()) > 0 {
		if r.answer.Overflown() {
			return hooks.Outcome{Reason: fmt.Sprintf("malformed answer on descriptor 4: longer than %d bytes", r.answer.Limit)}
		}
		return answerLine(string(r.answer.Bytes()))
	}
	return c.exitOutcome(status, r)
}

// exitOutcome reads how the process ended.
func (c *command) exitOutcome(status syscall.WaitStatus, r *running) hooks.Outcome {
	if status.Signaled() {
		return hooks.Outcome{Reason: message.JoinReason(process.DescribeEnd(status), r.stderr.LastLine())}
	}
	code := status.ExitStatus()
	o, ruled := message.ByRule(c.h.ExitCodes, code)
	switch {
	case ruled:
	case code == 0:
		o.Verdict = hooks.Ack
	case code == exDataErr:
		o.Verdict = hooks.Drop
	default:
		o.Verdict = hooks.Retry
	}
	if o.Verdict != hooks.Ack {
		o.Reason = message.JoinReason(process.DescribeEnd(status), r.stderr.LastLine())
	}
	return o
}

// answerLine reads what a process wrote to descriptor 4. Two lines are no
// answer: guessing which of them was meant could acknowledge a failure.
func answerLine(text string) hooks.Outcome {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "\r\n") {
		return hooks.Outcome{Reason: "malformed answer on descriptor 4: more than one line"}
	}
	o, err := message.ParseAnswer(text)
	if err != nil {
		return hooks.Outcome{Reason: message.JoinReason("malformed answer on descriptor 4", err.Error())}
	}
	return o
}

// Check implements [hooks.Checker]: the command exists and may be executed.
func (c *command) Check(context.Context) error { return c.cmd.Check() }
