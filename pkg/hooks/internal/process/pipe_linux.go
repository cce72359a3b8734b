package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// askUnread asks a pipe how much it holds that has not been read.
const askUnread = unix.TIOCINQ

// NewPipe is os.Pipe with blocking descriptors, neither of them known to the
// runtime's poller: the end that a process gets needs no registration, and the
// end that we keep is registered by Pollable.
func NewPipe() (r, w int, err error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return 0, 0, os.NewSyscallError("pipe2", err)
	}
	return p[0], p[1], nil
}
