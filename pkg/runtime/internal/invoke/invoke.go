// Package invoke calls handlers.
package invoke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// ErrPanicked is why an attempt has failed whose hook has panicked.
var ErrPanicked = errors.New("the handler panicked")

// Caller calls one hook, within its time.
type Caller struct {
	Hook    hooks.Hook
	Timeout time.Duration // of a call; 0: it may take for ever
	Log     *slog.Logger  // names the queue
}

// One calls the hook with one message. A hook that panics, which only one in this
// process can, fails its messages but does not end the process: all others that
// it has in hand would lose an attempt with it, or their copies.
func (c *Caller) One(work context.Context, m hooks.Message) (o hooks.Outcome, err error) {
	defer c.recover(m.MessageID, &err)
	ctx, cancel := c.timed(work)
	defer cancel()
	return c.Hook.Handle(ctx, m)
}

// Batch calls the hook, which has to be a [hooks.BatchHook], with several messages.
func (c *Caller) Batch(work context.Context, ms []hooks.Message) (each []hooks.Outcome, err error) {
	defer c.recover(ms[0].MessageID, &err)
	ctx, cancel := c.timed(work)
	defer cancel()
	return c.Hook.(hooks.BatchHook).HandleBatch(ctx, ms)
}

func (c *Caller) timed(work context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return work, func() {}
	}
	return context.WithTimeout(work, c.Timeout)
}

// recover, when deferred, makes an error of a panic.
func (c *Caller) recover(id string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("%w: %v", ErrPanicked, p)
	c.Log.Error("handler panicked; its attempt has failed, the process goes on", logkey.MessageID, id, logkey.Reason, fmt.Sprint(p), logkey.Stack, string(debug.Stack()))
}
