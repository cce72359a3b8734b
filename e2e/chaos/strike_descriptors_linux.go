package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// useUpDescriptors leaves rsctl no room for another file for a while, while its
// endpoint closes each connection after an answer.
func useUpDescriptors(ctx context.Context, s *scenario, _ plan) error {
	pid := s.processes[0].cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return err
	}
	few := unix.Rlimit{Cur: uint64(len(open) / 2), Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return err
	}
	s.server.SetKeepAlivesEnabled(false)
	err = pause(ctx, time.Second) // what waits for it is late by as much
	s.server.SetKeepAlivesEnabled(true)
	if undo := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); undo != nil {
		return undo
	}
	return err
}
