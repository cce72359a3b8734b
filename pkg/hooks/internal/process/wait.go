package process

import "syscall"

// waitBlocking waits for the end of a child of ours, with a thread of its own.
func waitBlocking(pid int) (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, err
		}
	}
}
