package rabbit

import "syscall"

// ownSession takes a process out of the terminal's reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ownGroup lets a process and its children be killed together.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownMounts is ownGroup with a private mount table: what the process mounts
// disappears with the last process that uses it.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
}
