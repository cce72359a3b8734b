package kinds

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// busyFor is how long a program that is being written (ETXTBSY) is tried again
// within one attempt. Tests make it longer where the program is known to be free
// soon.
const busyFor = time.Second

// An input is what a process gets: one delivery, or a batch.
type input struct {
	m        *hooks.Message // nil: a batch
	stdin    payload
	metadata payload // of descriptor 3
	answer   int     // how long an answer on descriptor 4 may be
	env      func(dir string) environ
}

// input is what the process gets for m.
func (c *command) input(m *hooks.Message) *input {
	return &input{
		m: m, stdin: rawPayload(m.Body), metadata: rawPayload(appendMetadata(make([]byte, 0, 1024), m)), answer: maxAnswer,
		env: func(dir string) environ { return deliveryEnv(c.env, dir, m) },
	}
}

// start runs the command. An error means that it did not start.
func (c *command) start(ctx context.Context, in *input) (*running, error) {
	dir, err := c.workDir()
	if err != nil {
		return nil, c.unavailable(err)
	}
	path, err := c.find()
	if err != nil {
		return nil, c.unavailable(err)
	}
	r, err := c.connect(in)
	if err != nil {
		return nil, c.unavailable(c.explainStart(path, err))
	}
	env := in.env(dir)
	r.pid, err = c.spawn(ctx, path, r.attr(dir, env.vars))
	if errors.Is(err, syscall.E2BIG) && in.m != nil && len(in.m.Headers) > 0 {
		env.omitted = len(in.m.Headers)
		r.pid, err = c.spawn(ctx, path, r.attr(dir, withoutHeaders(c.env, dir, in.m)))
	}
	if err != nil {
		r.abandon()
		return nil, c.unavailable(c.explainStart(path, err))
	}
	if env.omitted > 0 {
		c.warn.Do(func() {
			c.log(slog.LevelWarn, "headers left out of the handler's environment; descriptor 3 has them",
				in.m, slog.Int("headers", env.omitted))
		})
	}
	r.begin()
	return r, nil
}

// spawn starts the process, and waits a moment for a program that somebody is
// just writing. A fork elsewhere in rsctl can cause that as well, while the
// child still holds a descriptor that it is about to close. It forks without
// package os, which adds a handle and a file object per pipe to each process.
func (c *command) spawn(ctx context.Context, path string, attr *syscall.ProcAttr) (pid int, err error) {
	giveUp := time.Now().Add(c.busyFor)
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
