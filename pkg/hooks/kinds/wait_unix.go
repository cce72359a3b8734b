//go:build unix && !linux

package kinds

import "syscall"

// waitFor waits for the end of a child of ours.
func waitFor(pid int) (syscall.WaitStatus, error) { return waitBlocking(pid) }
