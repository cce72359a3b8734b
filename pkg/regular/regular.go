// Package regular reads files whose names come from a spec or a command line:
// regular files of a bounded size, and nothing else. A device, a pipe that nobody
// writes to or a directory would otherwise hang the process or fill its memory.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind is the cause of a refusal for what is no regular file.
var ErrKind = errors.New("not a regular file")

// Read returns the content of the regular file at path, after following links. A
// larger one than limit is an error, and so is everything else that has a name.
// Errors are a [*fs.PathError], as those of [os.ReadFile].
func Read(path string, limit int64) ([]byte, error) {
	refuse := func(err error) ([]byte, error) { return nil, &fs.PathError{Op: "read", Path: path, Err: err} }
	info, err := os.Stat(path) // first: to open a device may do something to it
	if err != nil {
		return nil, err
	}
	if err := check(info); err != nil {
		return refuse(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that has taken its place does not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := check(info); err != nil {
		return refuse(err)
	}
	data, err := ReadAll(f, limit)
	if err != nil {
		return refuse(err)
	}
	return data, nil
}

// ReadAll is [io.ReadAll] for at most limit bytes; more are an error.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("larger than %s", size(limit))
	}
	return data, nil
}

func check(info fs.FileInfo) error {
	kind := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	default:
		return ErrKind
	}
	return fmt.Errorf("%s, %w", kind, ErrKind)
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
