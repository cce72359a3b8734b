package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// pipeHolds is the most that a pipe of ours holds: Linux gives it 64 KiB, and
// other systems no more.
const pipeHolds = 64 << 10

// A LateReader reads a pipe until its deadline and then, without waiting, what
// its process has left there. A file past its deadline is not read even when it
// holds something, and on a busy machine that may be before it was read at all:
// an answer would be lost, and its exit code be taken for it. What a pipe holds
// is the bound, since a child that was left behind may go on writing.
type LateReader struct {
	f    *os.File
	late bool
	left int // bytes that may still be read when late
}

// NewLateReader returns a reader of f.
func NewLateReader(f *os.File) *LateReader { return &LateReader{f: f} }

// Read implements [io.Reader]. After the deadline it returns
// [os.ErrDeadlineExceeded] once nothing is left.
func (l *LateReader) Read(p []byte) (int, error) {
	if !l.late {
		n, err := l.f.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		l.late, l.left = true, pipeHolds
	}
	n := 0
	if l.left > 0 {
		n = readNow(l.f, p)
	}
	if n <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	l.left -= n
	return n, nil
}

// readNow reads what is there; it returns 0 or less when there is nothing.
func readNow(f *os.File, p []byte) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	f.SetReadDeadline(time.Time{})
	raw.Read(func(fd uintptr) bool {
		for err = syscall.EINTR; err == syscall.EINTR; {
			n, err = syscall.Read(int(fd), p)
		}
		return true
	})
	return n
}
