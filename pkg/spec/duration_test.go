package spec

import (
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "30s": 30 * time.Second, "1h30m": 90 * time.Minute,
		"1.5h": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0.5s": 500 * time.Millisecond,
		"0": 0, "0s": 0, "0ms": 0, "007s": 7 * time.Second, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "empty", "5": "missing unit", "1.5": "missing unit", "5m5": "missing unit", "-5s": "negative", "-0": "negative",
		"1 h": "spaces", " 1h": "spaces", "1h ": "spaces", "1H": `unit "H"`, "1w": `unit "w"`, "5us": `unit "us"`, "5min": `unit "in"`,
		"h": `unit "h"`, "1e3s": `unit "e"`, ".5s": `unit "s"`, "106752d": "292 years", "200000d200000d": "292 years",
		"99999999999999999999h": "292 years", strings.Repeat("9", 400) + "h": "292 years", "１s": "unit",
	} {
		got, err := ParseDuration(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%.20q) = %v, %v; want an error with %q", s, got, err, want)
		}
	}
}

func TestFormatDurationGivesOneTextPerDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Millisecond: "1ms", 1500 * time.Millisecond: "1500ms", 60 * time.Second: "1m", 90 * time.Second: "90s",
		24 * time.Hour: "1d", 36 * time.Hour: "36h", time.Microsecond: "1ms", 7 * 24 * time.Hour: "7d",
	} {
		got := FormatDuration(d)
		if got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
		if back, err := ParseDuration(got); err != nil || back < d {
			t.Errorf("ParseDuration(FormatDuration(%v)) = %v, %v", d, back, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]float64{"50/s": 50, "120/m": 2, "3600/h": 1, "0.5/s": 0.5} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "50", "50/d", "0/s", "-1/s", "x/s", "50/", "NaN/s", "Inf/s", "1e400/s"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", s, got)
		}
	}
}

// Where 0 means "no delay" it is taken with and without a unit; elsewhere it is
// refused, as everything else that has no unit.
func TestZeroIsADelayAndNothingElse(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		"backoff: 0": true, "backoff: 0s": true, "backoff: {initial: 0}": true, "batch: {size: 2, wait: 0}": true,
		"handler: {exec: [x], kill_grace: 0s}": true, "handler: {exec: [x], exit_codes: {3: retry_after 0s}}": true,
		"handler: {exec: [x], timeout: 0}": false, "handler: {exec: [x], timeout: 0s}": false,
		"breaker: {failures: 1, cooldown: 0s}": false, "delay: {strategy: dlx_ttl, tiers: [0s]}": false,
		"backoff: 5": false, `backoff: "5"`: false, "backoff: -5s": false, "backoff:": false, "backoff: 1 h": false,
		"backoff: {initial: 1s, max: 0s}": false, "handler: {http: \"http://h/\", max_retry_after: 0s}": false,
	} {
		s, problems := Parse([]byte("version: 1\nqueues:\n  - name: q\n    type: classic\n    "+key+"\n"), testOptions("q.yaml"))
		if problems.HasErrors() == ok {
			t.Errorf("%s: want accepted %t, got:\n%s", key, ok, problems)
		}
		if s != nil && strings.HasPrefix(key, "backoff") && s.Queues[0].Backoff != nil {
			t.Errorf("%s: a delay of 0 is no backoff, got %+v", key, s.Queues[0].Backoff)
		}
	}
}
