//go:build !linux || mips || mipsle || mips64 || mips64le

package cli

import (
	"os"
	"syscall"
)

// harmless signals end no run.
var harmless = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
