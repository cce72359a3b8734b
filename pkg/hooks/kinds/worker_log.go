package kinds

import "time"

// logWindow is the time in which a process may have maxStream bytes of its
// standard error logged.
const logWindow = time.Second

// workerLog logs what a long-lived process prints to its standard error, as
// outputLog does for one delivery, with a bound per time instead.
type workerLog struct {
	outputLog
	since time.Time // when the bound was last renewed
}

func newWorkerLog(c *command, pid int) *workerLog {
	return &workerLog{outputLog: outputLog{c: c, pid: pid, stream: "stderr"}, since: time.Now()}
}

func (l *workerLog) take(p []byte) {
	if now := time.Now(); now.Sub(l.since) >= logWindow {
		l.since = now
		l.truncated()
		l.used = 0
	}
	l.outputLog.take(p)
}
