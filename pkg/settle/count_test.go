package settle_test

import (
	"math"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
)

func TestAttempt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		typ     settle.Type
		counted int
		server  int64
		want    int
	}{
		{"a first delivery is attempt one", settle.Classic, 0, 0, 1},
		{"classic adds one to the copies' count", settle.Classic, 2, 0, 3},
		{"classic ignores a server count that came from elsewhere", settle.Classic, 0, 7, 1},
		{"quorum adds one to the server's count", settle.Quorum, 0, 2, 3},
		{"quorum adds up copies and server", settle.Quorum, 2, 1, 4},
		{"a negative count is none", settle.Classic, -5, 0, 1},
		{"a negative server count is none", settle.Quorum, 0, -5, 1},
		{"the smallest numbers are none", settle.Quorum, math.MinInt, math.MinInt64, 1},
		{"the largest count does not overflow", settle.Classic, math.MaxInt, 0, math.MaxInt32},
		{"the largest server count does not overflow", settle.Quorum, 0, math.MaxInt64, math.MaxInt32},
		{"the sum of the largest does not overflow", settle.Quorum, math.MaxInt, math.MaxInt64, math.MaxInt32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := settle.Attempt(tt.typ, tt.counted, tt.server); got != tt.want {
				t.Errorf("Attempt(%s, %d, %d) = %d, want %d", tt.typ, tt.counted, tt.server, got, tt.want)
			}
		})
	}
}

func TestBackoffAfter(t *testing.T) {
	t.Parallel()
	exponential := settle.Backoff{Initial: time.Second, Factor: 2}
	tests := []struct {
		name    string
		backoff settle.Backoff
		n       int
		jitter  float64
		want    time.Duration
	}{
		{"the first delay is the initial one", exponential, 1, 0, time.Second},
		{"every attempt multiplies it", exponential, 4, 0, 8 * time.Second},
		{"an attempt below one counts as one", exponential, -3, 0, time.Second},
		{"a factor below one does not shorten", settle.Backoff{Initial: time.Second, Factor: 0.5}, 9, 0, time.Second},
		{"growth without a max ends at the longest duration", exponential, math.MaxInt32, 0, math.MaxInt64},
		{"jitter on the longest duration does not overflow", settle.Backoff{Initial: math.MaxInt64, Jitter: 1}, 1, 0.9, math.MaxInt64},
		{"max holds against infinite growth", settle.Backoff{Initial: 1, Factor: 1e300, Max: time.Hour}, 99, 0, time.Hour},
		{"nothing stays nothing against infinite growth", settle.Backoff{Factor: 1e300}, 99, 0, 0},
		{"a negative jitter does not shorten", settle.Backoff{Initial: time.Second, Jitter: -1}, 1, 0.9, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.backoff.After(tt.n, tt.jitter); got != tt.want {
				t.Errorf("After(%d, %v) = %v, want %v", tt.n, tt.jitter, got, tt.want)
			}
		})
	}
}
