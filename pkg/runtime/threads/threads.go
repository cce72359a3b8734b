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

// spare is how many threads may be busy in the kernel besides those that run Go:
// one that forks, those that write the log, and a few that look at files.
const spare = 16

// Reserve makes the threads that the process will need. It takes milliseconds. An
// error means that there are fewer; nothing else is wrong then.
func Reserve() error { return reserve(runtime.GOMAXPROCS(0) + spare) }

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
