package process

import "time"

// logWindow is the time in which a process may have MaxStream bytes of its
// standard error logged.
const logWindow = time.Second

// A WindowLog logs what a long-lived process prints to its standard error, as
// an [OutputLog] does for one delivery, with a bound per time instead.
type WindowLog struct {
	OutputLog
	since time.Time // when the bound was last renewed
}

// NewWindowLog returns a log of the standard error of the process pid.
func NewWindowLog(c *Command, pid int) *WindowLog {
	return &WindowLog{OutputLog: OutputLog{c: c, pid: pid, stream: "stderr"}, since: time.Now()}
}

// Take implements [Taker].
func (l *WindowLog) Take(p []byte) {
	if now := time.Now(); now.Sub(l.since) >= logWindow {
		l.since = now
		l.truncated()
		l.used = 0
	}
	l.OutputLog.Take(p)
}
