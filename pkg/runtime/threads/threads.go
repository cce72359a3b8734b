// Package threads keeps a process alive that may start no more threads.
//
// The Go runtime ends the process when it needs a thread and gets none: at a limit
// of processes, which counts threads too (ulimit -u, pids.max of a container), and
// which the handlers of a message may have used up. A thread that is there already
// is never given back, so a process that has made some at its start has them then.
package threads

import (
	"runtime"
	"sync"
	"syscall"
)

const (
	// ForHandlers is how many threads may be busy in the kernel in a process that
	// runs handlers: one that forks, those that write the log, and a few that look
	// at files.
	ForHandlers = 16
	// most bounds what is reserved on a machine with many processors.
	most = 48
)

// Reserve makes the threads that the process will need: those that run Go, and
// busy ones besides. It takes milliseconds. An error means that there are fewer;
// nothing else is wrong then.
func Reserve(busy int) error {
	return reserve(fitting(min(runtime.GOMAXPROCS(0)+busy, most), limits()))
}

// fitting is n, or a quarter of the lowest limit: where little is allowed, the
// reserve must not be what uses it up.
func fitting(n int, limits []uint64) int {
	for _, limit := range limits {
		n = int(min(uint64(n), limit/4))
	}
	return n
}

// reserve has n goroutines wait in the kernel at the same time, each of which takes
// a thread.
func reserve(n int) error {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		return err
	}
	defer syscall.Close(ends[0])
	var waiting, done sync.WaitGroup
	waiting.Add(n)
	for range n {
		done.Go(func() {
			waiting.Done()
			var b [1]byte
			for {
				if _, err := syscall.Read(ends[0], b[:]); err != syscall.EINTR {
					return // the end of the pipe
				}
			}
		})
	}
	waiting.Wait()
	err := syscall.Close(ends[1])
	done.Wait()
	return err
}
