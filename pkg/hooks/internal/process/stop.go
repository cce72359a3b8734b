package process

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Stopper ends a process group when its context is done: SIGTERM, and after a
// grace SIGKILL. Members that outlive the leader get the same grace.
type Stopper struct {
	group  int // the leader's process id
	grace  time.Duration
	cancel func() bool
	exited chan struct{} // closed when the leader has ended
	done   chan struct{} // closed when the group is gone or was killed
}

// NewStopper returns a stopper of the group with this leader, which has to be
// finished.
func NewStopper(ctx context.Context, group int, grace time.Duration) *Stopper {
	s := &Stopper{group: group, grace: grace, exited: make(chan struct{}), done: make(chan struct{})}
	s.cancel = context.AfterFunc(ctx, s.stop)
	return s
}

// Finish is called when the leader has ended. It reports whether the group was
// stopped, and returns after the last of it is gone.
func (s *Stopper) Finish() bool {
	if s.cancel() {
		return false
	}
	close(s.exited)
	<-s.done
	return true
}

func (s *Stopper) stop() {
	defer close(s.done)
	killed := time.NewTimer(s.grace)
	defer killed.Stop()
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGCONT) // a stopped process cannot act on SIGTERM
	select {
	case <-killed.C:
	case <-s.exited:
		if s.emptied(killed.C) {
			return
		}
	}
	s.signal(syscall.SIGKILL)
}

// emptied waits until no member is left, and reports false when the time is up
// first. The kernel does not report the end of grandchildren, so it asks.
func (s *Stopper) emptied(timeUp <-chan time.Time) bool {
	ask := time.NewTicker(5 * time.Millisecond)
	defer ask.Stop()
	for s.signal(0) != syscall.ESRCH {
		select {
		case <-timeUp:
			return false
		case <-ask.C:
		}
	}
	return true
}

// signal sends to the whole group. A process id is not given out again while a
// group of that number has members, so this cannot hit a stranger.
func (s *Stopper) signal(sig syscall.Signal) error { return syscall.Kill(-s.group, sig) }

// DescribeEnd is how a process ended: a kill by a signal reads differently from
// an exit code above 128, by which shells report a signal of their child.
func DescribeEnd(status syscall.WaitStatus) string {
	if !status.Signaled() {
		return fmt.Sprintf("exit status %d", status.ExitStatus())
	}
	sig := status.Signal()
	if name := unix.SignalName(sig); name != "" {
		return fmt.Sprintf("killed by signal %d (%s)", int(sig), strings.TrimPrefix(name, "SIG"))
	}
	return fmt.Sprintf("killed by signal %d", int(sig))
}
