package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// oneStop is the time within which two signals are one wish to stop: a terminal
// and a supervisor both send it, or somebody's finger is quick.
const oneStop = 300 * time.Millisecond

// hardAfter is how long after the grace of the handlers a second signal ends the
// process, whatever broker and handlers do.
const hardAfter = 1200 * time.Millisecond

// stop holds the stages of a run's end: the first signal ends intake, the second
// ends work as well, and hard is closed when not even that has led to the end.
type stop struct {
	intake, work context.Context
	hard         chan struct{}
	end          func()
}

// stopOnSignal makes the stages; grace is what a handler has between SIGTERM and
// SIGKILL.
func stopOnSignal(parent context.Context, grace time.Duration, log *slog.Logger) *stop {
	work, kill := context.WithCancelCause(parent)
	intake, drain := context.WithCancelCause(work)
	st := &stop{intake: intake, work: work, hard: make(chan struct{})}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(stopSignals(), harmless...)...)
	go func() {
		var wishes wishes
		for {
			select {
			case <-work.Done():
				return
			case s := <-signals:
				switch {
				case isHarmless(s):
					log.Debug("signal ignored", "signal", s.String())
				case !wishes.count(s, time.Now()):
					log.Debug("a second signal of one stop", "signal", s.String())
				case intake.Err() == nil:
					drain(errInterrupted)
					log.Info(s.String() + ": draining; once more stops at once")
				default:
					time.AfterFunc(grace+hardAfter, func() { close(st.hard) })
					kill(errInterrupted)
					log.Warn(s.String() + " again: stopping now")
				}
			}
		}
	}()
	st.end = func() { signal.Stop(signals); kill(nil) }
	return st
}

// stopSignals ask a process to end: supervisors and images differ in the one they
// send. A SIGHUP that whoever started the process keeps away, as nohup does, is
// none.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

func isHarmless(s os.Signal) bool {
	for _, h := range harmless {
		if s == h {
			return true
		}
	}
	return false
}

// wishes tells one wish to stop from the next.
type wishes struct {
	last os.Signal
	at   time.Time
}

// count reports whether s is a wish of its own. The same signal within a moment is
// not, nor is the SIGHUP that systemd can send right after another.
func (w *wishes) count(s os.Signal, now time.Time) bool {
	if w.last != nil && (s == w.last || s == syscall.SIGHUP) && now.Sub(w.at) < oneStop {
		return false
	}
	w.last, w.at = s, now
	return true
}
