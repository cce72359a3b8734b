package cli

import (
	"strings"
	"time"
)

// short renders d as a spec would write it: 5m rather than 5m0s, days from two
// days on.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		text := itoa(int(d/day)) + "d"
		if rest := d % day; rest > 0 {
			text += short(rest)
		}
		return text
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
