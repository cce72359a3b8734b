package exec

import (
	"context"
	"errors"
	"log/slog"
	"syscall"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
)

// An input is what a process gets: one delivery, or a batch.
type input struct {
	m        *hooks.Message // nil: a batch
	stdin    message.Payload
	metadata message.Payload // of descriptor 3
	answer   int             // how long an answer on descriptor 4 may be
	env      func(dir string) environ
}

// input is what the process gets for m.
func (c *command) input(m *hooks.Message) *input {
	return &input{
		m: m, stdin: message.Raw(m.Body), metadata: message.Raw(message.AppendMetadata(make([]byte, 0, 1024), m)), answer: maxAnswer,
		env: func(dir string) environ { return deliveryEnv(c.cmd.Env, dir, m) },
	}
}

// start runs the command. An error means that it did not start.
func (c *command) start(ctx context.Context, in *input) (*running, error) {
	dir, path, err := c.cmd.Locate()
	if err != nil {
		return nil, c.cmd.Unavailable(err)
	}
	r, err := c.connect(in)
	if err != nil {
		return nil, c.cmd.Unavailable(c.cmd.ExplainStart(path, err))
	}
	env := in.env(dir)
	r.pid, err = c.cmd.Spawn(ctx, path, dir, env.vars, r.childEnds)
	if errors.Is(err, syscall.E2BIG) && in.m != nil && len(in.m.Headers) > 0 {
		env.omitted = len(in.m.Headers)
		r.pid, err = c.cmd.Spawn(ctx, path, dir, withoutHeaders(c.cmd.Env, dir, in.m), r.childEnds)
	}
	if err != nil {
		r.abandon()
		return nil, c.cmd.Unavailable(c.cmd.ExplainStart(path, err))
	}
	if env.omitted > 0 {
		c.warn.Do(func() {
			c.cmd.Log(slog.LevelWarn, "headers left out of the handler's environment; descriptor 3 has them",
				in.m, slog.Int("headers", env.omitted))
		})
	}
	r.begin()
	return r, nil
}
