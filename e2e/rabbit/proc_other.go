//go:build !linux

package rabbit

import "syscall"

// ownSession takes a process out of the terminal's reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ownGroup lets a process and its children be killed together.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownMounts exists on Linux only; the folders that need it are never used here.
func ownMounts() *syscall.SysProcAttr { return ownGroup() }
