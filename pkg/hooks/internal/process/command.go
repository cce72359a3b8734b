// Package process starts the commands of handlers and listens to them: what exec
// and worker have in common. A [Command] is what a spec says; pipes, the end of a
// process group and the log of its output are separate from it.
package process

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// busyFor is how long a program that is being written (ETXTBSY) is tried again
// within one attempt.
const busyFor = time.Second

// A Command is the command of a handler, which can be started many times.
type Command struct {
	// Env is the environment that a process gets, inherited and from the spec,
	// without what a delivery sets. It is not to be changed.
	Env []string
	// BusyFor is how long a program that is being written is tried again. Tests
	// make it longer where the program is known to be free soon.
	BusyFor time.Duration

	h    *spec.Handler
	opts setup.Options
	argv []string
	path string // where bare names are looked for
}

// New returns the command of h. Its errors are about the spec.
func New(h *spec.Handler, o setup.Options) (*Command, error) {
	if len(h.Command) == 0 || h.Command[0].Value == "" {
		return nil, fmt.Errorf(`%s needs a command, such as %[1]s: ["./handle.sh"]`, h.Kind)
	}
	c := &Command{h: h, opts: o, BusyFor: busyFor}
	for _, arg := range h.Command {
		if strings.ContainsRune(arg.Value, 0) {
			return nil, fmt.Errorf("%s: an argument holds a NUL byte, which no process can be given", h.Kind)
		}
		c.argv = append(c.argv, arg.Value)
	}
	c.Env, c.path = baseEnv(inheritable(o.Env, h.InheritOnly), h.Env)
	return c, nil
}

// Check reports, without starting it, whether the command exists and may be
// executed. The error is a [hooks.UnavailableError].
func (c *Command) Check() error {
	_, path, err := c.Locate()
	if err == nil {
		err = c.usable(path)
	}
	if err != nil {
		return c.Unavailable(err)
	}
	return nil
}

// Locate returns the folder that a process starts in, without symbolic links so
// that PWD says where the process really is, and the file that is executed.
func (c *Command) Locate() (dir, path string, err error) {
	dir, err = filepath.EvalSymlinks(c.h.Dir)
	if err != nil {
		return "", "", fmt.Errorf("working directory %s: %w", message.Printable(c.h.Dir, 512), errno(err))
	}
	path, err = c.find()
	return dir, path, err
}

// Spawn starts the process as the leader of a group of its own, so that a timeout
// ends everything it started, and a Ctrl-C at a terminal reaches only rsctl. files
// are its descriptors, from 0 on; they stay the caller's. An error is that of the
// system; see [Command.ExplainStart].
//
// Spawn waits a moment for a program that somebody is just writing. A fork
// elsewhere in rsctl can cause that as well, while the child still holds a
// descriptor that it is about to close. It forks without package os, which adds a
// handle and a file object per pipe to each process.
func (c *Command) Spawn(ctx context.Context, path, dir string, env []string, files []uintptr) (pid int, err error) {
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true}}
	giveUp := time.Now().Add(c.BusyFor)
	for pause := time.Millisecond; ; pause *= 2 {
		pid, err = syscall.ForkExec(path, c.argv, attr)
		if err != syscall.ETXTBSY || time.Now().Add(pause).After(giveUp) {
			return pid, err
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(pause):
		}
	}
}

// Unavailable says that err keeps the command from being run.
func (c *Command) Unavailable(err error) error {
	return &hooks.UnavailableError{Target: c.target(), Err: err}
}

// target is the command as it may be shown: the file it resolves to, unless the
// name came from the environment.
func (c *Command) target() string {
	name := c.h.Command[0]
	if name.String() != name.Value || !strings.Contains(name.Value, "/") {
		return fmt.Sprintf("%s %q", c.h.Kind, message.Printable(name.String(), 256))
	}
	path, _ := c.find()
	return string(c.h.Kind) + " " + message.Printable(path, 512)
}

// Log writes a record about the delivery m, or about the command when m is nil.
func (c *Command) Log(level slog.Level, msg string, m *hooks.Message, attrs ...slog.Attr) {
	all := []slog.Attr{slog.String("queue", c.opts.Queue)}
	if m != nil {
		all = append(all, slog.String("message_id", message.Printable(m.MessageID, 255)), slog.Int("attempt", m.Attempt))
	}
	c.opts.Log.LogAttrs(context.Background(), level, msg, append(all, attrs...)...)
}
