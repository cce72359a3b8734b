package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// WaitFor waits for the end of a child of ours. It takes no thread: with one for
// each process that runs, handlers would use up twice what they may, and the Go
// runtime ends rsctl when it gets no thread. Kernels before 5.10, and sandboxes
// without pidfd_open, get the wait that does.
func WaitFor(pid int) (status syscall.WaitStatus, err error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return waitBlocking(pid)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return waitBlocking(pid)
	}
	var waitErr error
	err = raw.Read(func(uintptr) (over bool) { // a pidfd can be read once its process has ended
		status, over, waitErr = waitNow(pid)
		return over
	})
	if err != nil {
		return waitBlocking(pid)
	}
	return status, waitErr
}

// waitNow reports whether the child has ended, and how.
func waitNow(pid int) (status syscall.WaitStatus, over bool, err error) {
	n := 0
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	}
	return status, n == pid || err != nil, err
}
