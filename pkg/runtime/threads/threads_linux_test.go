package threads

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

var threadCount = regexp.MustCompile(`(?m)^Threads:\s+([0-9]+)$`)

func TestTheReserveIsSmallWhereLittleIsAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits []uint64
		want   int
	}{{nil, 20}, {[]uint64{1 << 63}, 20}, {[]uint64{80}, 20}, {[]uint64{4096, 40}, 10}, {[]uint64{3, 40}, 0}} {
		if got := fitting(20, tt.limits); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.limits, got, tt.want)
		}
	}
}

func TestReserveMakesThreadsThatStay(t *testing.T) {
	const n = 40
	if err := reserve(n); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := threadCount.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no thread count in:\n%s", status)
	}
	// The last to start may not have had to leave its thread to another.
	if got, err := strconv.Atoi(string(m[1])); err != nil || got < n-1 {
		t.Errorf("%d threads, %v, want %d", got, err, n)
	}
}
