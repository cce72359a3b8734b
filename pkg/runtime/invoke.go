package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// errPanicked is why an attempt has failed whose hook has panicked.
var errPanicked = errors.New("the handler panicked")

// call runs the hook on one message, within its time.
func (c *consumer) call(work context.Context, m hooks.Message) (o hooks.Outcome, err error) {
	defer c.recoverPanic(m.MessageID, &err)
	ctx, cancel := c.timed(work)
	defer cancel()
	return c.q.Hook.Handle(ctx, m)
}

func (c *consumer) callBatch(work context.Context, ms []hooks.Message) (each []hooks.Outcome, err error) {
	defer c.recoverPanic(ms[0].MessageID, &err)
	ctx, cancel := c.timed(work)
	defer cancel()
	return c.q.Hook.(hooks.BatchHook).HandleBatch(ctx, ms) // Run has seen to it
}

// timed is the context of a hook call.
func (c *consumer) timed(work context.Context) (context.Context, context.CancelFunc) {
	if c.q.Timeout <= 0 {
		return work, func() {}
	}
	return context.WithTimeout(work, c.q.Timeout)
}

// recoverPanic, when deferred, makes an error of a panic. A hook that panics, which
// only one in this process can, fails its messages but does not end the process:
// all others that it has in hand would lose an attempt with it, or their copies.
func (c *consumer) recoverPanic(id string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("%w: %v", errPanicked, p)
	c.log.Error("handler panicked; its attempt has failed, the process goes on", keyMessage, id, keyReason, fmt.Sprint(p), keyStack, string(debug.Stack()))
}
