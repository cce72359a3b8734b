package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// interruptible ends the context on the first SIGINT or SIGTERM; a second one
// kills the process in the usual way.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// limited is interruptible with a time limit; 0 is none.
func limited(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := interruptible(parent)
	if limit <= 0 {
		return ctx, stop
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("gave up after %s (--timeout)", limit))
	return timed, func() { cancel(); stop() }
}

// whyEnded names the reason why ctx ended, when it did, before what that broke.
func whyEnded(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(err, ctx.Err()) || errors.Is(err, cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// open dials a session for a short command.
func open(ctx context.Context, b spec.Broker, purpose string) (*broker.Session, error) {
	session, err := broker.Open(ctx, b, purpose)
	if err != nil {
		return nil, whyEnded(ctx, err)
	}
	return session, nil
}
