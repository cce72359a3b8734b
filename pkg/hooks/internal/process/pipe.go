package process

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// PipeSafe is what an empty pipe takes without a reader, on every system
	// and also when the user's pipe memory is used up.
	PipeSafe = 4096
	// DrainFor is how long output is read after the process has ended: a child
	// that it left behind may hold the pipes open for ever.
	DrainFor = 200 * time.Millisecond
)

// Pollable is our end of a pipe: waiting for it takes no thread.
func Pollable(fd int) *os.File {
	syscall.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "|")
}

// CloseAll closes ends of pipes that a process has been given.
func CloseAll(fds []uintptr) {
	for _, fd := range fds {
		syscall.Close(int(fd))
	}
}

// Unread is how much of what a pipe was given has not been read.
func Unread(f *os.File) int64 {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), askUnread) })
	return int64(n)
}
