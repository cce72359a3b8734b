package message

import (
	"testing"
	"time"
)

func TestParseAnswerDelays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour,
		"0s": 0, "-5s": -5 * time.Second, "36500d": 36500 * 24 * time.Hour,
	} {
		if got, err := parseDelay(text); err != nil || got != want {
			t.Errorf("parseDelay(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30", "1.5", "soon", "5 s", "d", "99999999999d", "99999999999h", "--1s", "NaN"} {
		if got, err := parseDelay(text); err == nil {
			t.Errorf("parseDelay(%q) = %v, want an error", text, got)
		}
	}
}
