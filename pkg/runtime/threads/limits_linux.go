package threads

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limits are how many processes and threads the user, and the container, may have.
// What cannot be read, or is no number, is no limit.
func limits() []uint64 {
	var all []uint64
	var user unix.Rlimit
	if os.Getuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &user) == nil {
		all = append(all, user.Cur)
	}
	for _, file := range []string{"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}
