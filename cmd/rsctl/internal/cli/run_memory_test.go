package cli

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheMemoryLimitIsTheUsersWhenThereIsOne(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	limit := func(env string, maxInMemory int64) int64 {
		t.Setenv("GOMEMLIMIT", env)
		defer limitMemory(maxInMemory)()
		return debug.SetMemoryLimit(-1)
	}
	for _, tt := range []struct {
		env         string
		maxInMemory int64
		want        int64
	}{{"", 1e9, 2e9}, {"", 1, leastLimit}, {"", math.MaxInt64, 1 << 61}, {"1GiB", 1e9, before}} {
		if got := limit(tt.env, tt.maxInMemory); got != tt.want {
			t.Errorf("GOMEMLIMIT=%s, max_in_memory %d: %d, want %d", tt.env, tt.maxInMemory, got, tt.want)
		}
	}
	if after := debug.SetMemoryLimit(-1); after != before {
		t.Errorf("the limit stays at %d, want %d", after, before)
	}
}
