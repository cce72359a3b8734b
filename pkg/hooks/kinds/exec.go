package kinds

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// The exit codes with a meaning of their own, from sysexits.h. Every other
// code than 0 is a retry.
const (
	exDataErr  = 65
	exTempFail = 75
)

// command runs one process per delivery. The process gets the body on stdin,
// metadata in its environment and on descriptor 3, and answers by its exit code
// or by a line on descriptor 4.
type command struct {
	h     *spec.Handler
	opts  Options
	argv  []string
	env   []string // inherited and from the spec, without what a delivery sets
	path  string   // where bare names are looked for
	grace time.Duration
	warn  *rate.Sometimes

	busyFor time.Duration
}

func newExec(h *spec.Handler, o Options) (hooks.Hook, error) {
	c, err := newCommand(h, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newCommand reads what the kinds that start processes have in common.
func newCommand(h *spec.Handler, o Options) (*command, error) {
	if len(h.Command) == 0 || h.Command[0].Value == "" {
		return nil, fmt.Errorf(`%s needs a command, such as %[1]s: ["./handle.sh"]`, h.Kind)
	}
	c := &command{h: h, opts: o, grace: h.KillGrace, warn: &rate.Sometimes{Interval: time.Minute}, busyFor: busyFor}
	for _, arg := range h.Command {
		if strings.ContainsRune(arg.Value, 0) {
			return nil, fmt.Errorf("%s: an argument holds a NUL byte, which no process can be given", h.Kind)
		}
		c.argv = append(c.argv, arg.Value)
	}
	c.env, c.path = baseEnv(inheritable(o.Env, h.InheritOnly), h.Env)
	return c, nil
}

// Handle implements [hooks.Hook].
func (c *command) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: stopReason(ctx, c.h.Timeout)}, nil
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
	status, stopped, err := r.wait(ctx, c.grace)
	if err != nil {
		return ended{}, c.unavailable(err)
	}
	e := ended{running: r, status: status}
	if stopped {
		e.stopped = joinReason(stopReason(ctx, c.h.Timeout), r.stderr.lastLine())
	}
	return e, nil
}

// withReply adds what an acknowledging process has written to its standard
// output. A cut reply would be a wrong one.
func withReply(o hooks.Outcome, reply *head) hooks.Outcome {
	switch {
	case reply == nil || o.Verdict != hooks.Ack:
		return o
	case len(reply.buf) > reply.limit:
		return hooks.Outcome{Reason: fmt.Sprintf("the reply on standard output is longer than %d bytes", reply.limit)}
	}
	o.Reply = append([]byte{}, reply.buf...)
	return o
}

// outcome reads the answer on descriptor 4 and, without one, how the process
// ended.
func (c *command) outcome(status syscall.WaitStatus, r *running) hooks.Outcome {
	if len(r.answer.buf) > 0 {
		if len(r.answer.buf) > r.answer.limit {
			return hooks.Outcome{Reason: fmt.Sprintf("malformed answer on descriptor 4: longer than %d bytes", r.answer.limit)}
		}
		return answerLine(string(r.answer.buf))
	}
	return c.exitOutcome(status, r)
}

// exitOutcome reads how the process ended.
func (c *command) exitOutcome(status syscall.WaitStatus, r *running) hooks.Outcome {
	if status.Signaled() {
		return hooks.Outcome{Reason: joinReason(describeEnd(status), r.stderr.lastLine())}
	}
	code := status.ExitStatus()
	o, ruled := byRule(c.h.ExitCodes, code)
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
		o.Reason = joinReason(describeEnd(status), r.stderr.lastLine())
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
	o, err := parseAnswer(text)
	if err != nil {
		return hooks.Outcome{Reason: joinReason("malformed answer on descriptor 4", err.Error())}
	}
	return o
}

// Check implements [hooks.Checker]: the command exists and may be executed.
func (c *command) Check(context.Context) error {
	if _, err := c.workDir(); err != nil {
		return c.unavailable(err)
	}
	path, err := c.find()
	if err == nil {
		err = c.usable(path)
	}
	if err != nil {
		return c.unavailable(err)
	}
	return nil
}

func (c *command) unavailable(err error) error {
	return &hooks.UnavailableError{Target: c.target(), Err: err}
}

// target is the command as it may be shown: the file it resolves to, unless the
// name came from the environment.
func (c *command) target() string {
	name := c.h.Command[0]
	if name.String() != name.Value || !strings.Contains(name.Value, "/") {
		return fmt.Sprintf("%s %q", c.h.Kind, printable(name.String(), 256))
	}
	path, _ := c.find()
	return string(c.h.Kind) + " " + printable(path, 512)
}

// workDir is the folder that a process starts in, without symbolic links, so
// that PWD says where the process really is.
func (c *command) workDir() (string, error) {
	dir, err := filepath.EvalSymlinks(c.h.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory %s: %w", printable(c.h.Dir, 512), errno(err))
	}
	return dir, nil
}

// log writes a record about the delivery m, or about the command when m is nil.
func (c *command) log(level slog.Level, msg string, m *hooks.Message, attrs ...slog.Attr) {
	all := []slog.Attr{slog.String("queue", c.opts.Queue)}
	if m != nil {
		all = append(all, slog.String("message_id", printable(m.MessageID, 255)), slog.Int("attempt", m.Attempt))
	}
	c.opts.Log.LogAttrs(context.Background(), level, msg, append(all, attrs...)...)
}
