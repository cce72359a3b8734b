//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// askUnread asks a pipe how much it holds that has not been read: FIONREAD.
const askUnread = 0x4004667f

// NewPipe is the version for systems without pipe2.
func NewPipe() (r, w int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		return 0, 0, os.NewSyscallError("pipe", err)
	}
	syscall.CloseOnExec(p[0])
	syscall.CloseOnExec(p[1])
	return p[0], p[1], nil
}
