package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultPath is searched when neither the spec nor the environment sets PATH.
const DefaultPath = "/usr/local/bin:/usr/bin:/bin"

// find returns the file that the command names. A name with a slash is relative
// to the spec file, whatever folder the process will run in; a bare name is
// looked for in the PATH that the process gets, whose relative entries are
// relative to the spec file too. Nothing depends on where rsctl was started.
func (c *Command) find() (string, error) {
	name := c.argv[0]
	if strings.Contains(name, "/") {
		return absolute(c.opts.Dir, name), nil
	}
	var found error
	for _, entry := range filepath.SplitList(c.path) {
		path := filepath.Join(absolute(c.opts.Dir, entry), name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if found == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			found = fmt.Errorf("%s: %w", path, err)
		}
	}
	if found != nil {
		return "", found
	}
	return "", fmt.Errorf("not found in PATH%s", c.hint())
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// executable reports why path could not be executed by this user, as far as
// one can tell without trying.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errno(err)
	case info.IsDir():
		return errIsDirectory
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	if info.Mode().Perm()&0o111 == 0 || unix.Access(path, unix.X_OK) != nil {
		return errNotExecutable
	}
	return nil
}

var (
	errIsDirectory   = errors.New("is a directory, not a command")
	errNotExecutable = errors.New("permission denied: the file is not executable (chmod +x)")
)

// usable is executable with the hints that a missing file may need.
func (c *Command) usable(path string) error {
	err := executable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w%s", err, c.hint())
	}
	return err
}

// hint guesses what was meant by a command that does not exist.
func (c *Command) hint() string {
	name := c.argv[0]
	if strings.ContainsAny(name, " \t") {
		return `; arguments are separate items: exec: ["sh", "-c", "echo hi"]`
	}
	if strings.Contains(name, "/") && c.opts.Dir != c.h.Dir && executable(absolute(c.h.Dir, name)) == nil {
		return fmt.Sprintf("; a relative command is relative to the spec file, and there is one at %s", absolute(c.h.Dir, name))
	}
	return ""
}

// ExplainStart turns an error of fork/exec into one that says what to do.
func (c *Command) ExplainStart(path string, err error) error {
	err = errno(err)
	if why := c.usable(path); why != nil {
		return why
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return errors.New("the file is there, but the interpreter or loader that it names is not")
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("not a program: a script needs a first line such as #!/bin/sh")
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: the arguments and the inherited environment are larger than the kernel allows", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: raise ulimit -n or lower concurrency", err)
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("cannot start a process: %w: raise the limit of processes (ulimit -u, or that of the container) or lower concurrency", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("cannot start a process: %w", err)
	}
	return err
}

// errno strips the path and operation from an error of package os.
func errno(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}
