//go:build !mips && !mipsle && !mips64 && !mips64le

package pidone

import (
	"os"
	"syscall"
)

// alsoPassedOn would end a Go program that does not take it.
var alsoPassedOn = []os.Signal{syscall.SIGSTKFLT}
