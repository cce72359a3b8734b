package cli

import (
	"os"
	"runtime/debug"
)

// leastLimit is the lowest limit that limitMemory sets: below it the collector
// would work all the time, for nothing.
const leastLimit = 512 << 20

// limitMemory lets the garbage collector work more often once the process takes
// twice what bodies may take: a large message leaves several times its size behind
// while it is received. It is no bound, and the user's own GOMEMLIMIT comes first.
func limitMemory(maxInMemory int64) (undo func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(max(2*min(maxInMemory, 1<<60), leastLimit))
	return func() { debug.SetMemoryLimit(before) }
}
