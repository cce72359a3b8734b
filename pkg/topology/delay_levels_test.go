package topology

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestLadderRoute(t *testing.T) {
	t.Parallel()
	zeros := func(n int) string { return strings.Repeat("0.", n) }
	for _, tt := range []struct {
		name  string
		d     time.Duration
		level int
		bits  string
	}{
		{"a negative delay is a second", -time.Hour, 0, zeros(27) + "1."},
		{"zero is a second", 0, 0, zeros(27) + "1."},
		{"a nanosecond is a second", 1, 0, zeros(27) + "1."},
		{"one second", time.Second, 0, zeros(27) + "1."},
		{"a nanosecond more is two", time.Second + 1, 1, zeros(26) + "1.0."},
		{"five seconds", 5 * time.Second, 2, zeros(25) + "1.0.1."},
		{"the highest level alone", (1 << 27) * time.Second, 27, "1." + zeros(27)},
		{"the whole ladder", (1<<28 - 1) * time.Second, 27, strings.Repeat("1.", 28)},
		{"more than the ladder is capped", 1 << 28 * time.Second, 27, strings.Repeat("1.", 28)},
		{"the largest duration is capped", math.MaxInt64, 27, strings.Repeat("1.", 28)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if level, key := ladderRoute(tt.d, "eu.orders"); level != tt.level || key != tt.bits+"eu.orders" {
				t.Errorf("ladderRoute(%v) = %d, %q; want %d, %q", tt.d, level, key, tt.level, tt.bits+"eu.orders")
			}
		})
	}
}

func TestLadderAddressKeepsNamesApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"orders", "eu.orders", "*", "#", "%", "%2A", "%23", "%25", "%h", "a*", "a#", "a%2A",
		strings.Repeat("x", 199), strings.Repeat("x", 200), strings.Repeat("x", 255), strings.Repeat("#", 100), strings.Repeat("%23", 85)} {
		got := ladderAddress(name)
		if other, dup := seen[got]; dup {
			t.Errorf("%q and %q have the address %q", name, other, got)
		}
		seen[got] = name
		if len(got)+2*ladderLevels > 255 {
			t.Errorf("the key of a name of %d bytes has %d", len(name), len(got)+2*ladderLevels)
		}
		for word := range strings.SplitSeq(got, ".") {
			if word == "*" || word == "#" {
				t.Errorf("the address of %q has the wildcard %q", name, word)
			}
		}
	}
}

// The words of a key are the delay in binary, rounded up to whole seconds.
func FuzzLadderRouteSpellsTheDelay(f *testing.F) {
	f.Add(int64(1500 * time.Millisecond))
	f.Add(int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, n int64) {
		level, key := ladderRoute(time.Duration(n), "q")
		var sum time.Duration
		words := strings.Split(key, ".")
		for i, w := range words[:ladderLevels] {
			if w == "1" {
				sum += time.Second << (ladderLevels - 1 - i)
			}
		}
		want := min(max(time.Duration(n), 1), maxLadder)
		if sum < want || sum >= want+time.Second {
			t.Errorf("key %q waits %v, want %v", key, sum, want)
		}
		if top := strings.Index(key, "1") / 2; ladderLevels-1-top != level {
			t.Errorf("key %q starts at level %d", key, level)
		}
	})
}
