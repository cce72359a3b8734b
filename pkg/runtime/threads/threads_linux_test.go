package threads

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

var threadCount = regexp.MustCompile(`(?m)^Threads:\s+([0-9]+)$`)

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
