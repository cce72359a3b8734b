package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// drainOnSignal returns the two contexts of a run: the first SIGINT or SIGTERM
// ends intake, the second ends work as well.
func (a *app) drainOnSignal(parent context.Context) (intake, work context.Context, stop func()) {
	work, kill := context.WithCancelCause(parent)
	intake, drain := context.WithCancelCause(work)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for {
			select {
			case <-work.Done():
				return
			case s := <-signals:
				if intake.Err() != nil {
					a.stderr().printf("rsctl: %s again: stopping now\n", s)
					kill(errInterrupted)
					return
				}
				a.stderr().printf("rsctl: %s: draining; once more stops at once\n", s)
				drain(errInterrupted)
			}
		}
	}()
	return intake, work, func() { signal.Stop(signals); kill(nil) }
}
