//go:build unix && !linux

package process

import "syscall"

// WaitFor waits for the end of a child of ours.
func WaitFor(pid int) (syscall.WaitStatus, error) { return waitBlocking(pid) }
