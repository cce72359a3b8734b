//go:build !mips && !mipsle && !mips64 && !mips64le

package cli

import (
	"os"
	"syscall"
)

// harmless signals end no run. Without being taken, SIGSTKFLT would.
var harmless = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGSTKFLT}
