package spec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const durationUnits = "ms, s, m, h and d"

var (
	durationPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)`)
	unitOnly     = regexp.MustCompile(`^[0-9.]*([^0-9.]+)`)
	units        = []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
)

// ParseDuration reads a duration as a spec writes it: 500ms, 30s, 1h30m, 1.5h,
// 7d. Units are ms, s, m, h and d; there is no default unit. The bare 0 is the
// one number that needs none. Negative durations and those above 292 years are
// errors; the error completes the sentence "… must be a duration: ".
func ParseDuration(s string) (time.Duration, error) {
	switch {
	case s == "0":
		return 0, nil
	case s == "":
		return 0, errors.New("it is empty")
	case strings.HasPrefix(s, "-"):
		return 0, errors.New("it must not be negative")
	}
	var sum float64
	var exact time.Duration
	for rest := s; rest != ""; {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, durationFault(rest)
		}
		part, size, err := durationSize(m[1], m[2])
		if err != nil {
			return 0, err
		}
		if sum += size; sum >= math.MaxInt64 {
			return 0, errors.New("it is longer than 292 years")
		}
		exact += part
		rest = rest[len(m[0]):]
	}
	return exact, nil
}

// durationSize returns number x unit, exact for whole numbers, and as a float
// that shows an overflow.
func durationSize(number, unit string) (time.Duration, float64, error) {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, 0, errors.New("it is longer than 292 years")
	}
	for _, u := range units {
		if u.name != unit {
			continue
		}
		size := f * float64(u.size)
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && size < math.MaxInt64 {
			return time.Duration(n) * u.size, size, nil
		}
		return time.Duration(min(size, math.MaxInt64/2)), size, nil
	}
	return 0, 0, durationFault(unit)
}

func durationFault(rest string) error {
	if strings.ContainsAny(rest, " \t\r\n") {
		return errors.New("it must not hold spaces")
	}
	m := unitOnly.FindStringSubmatch(rest)
	if m == nil {
		return errors.New("missing unit")
	}
	return fmt.Errorf("unknown unit %s", quoteShort(m[1]))
}

// FormatDuration writes d with the largest unit that divides it: 90s, 1m, 1d,
// 1500ms. One duration always gives one text, so that names of waiting queues
// can be built from it. Parts of a millisecond are rounded up.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	for _, u := range units {
		if d%u.size == 0 {
			return strconv.FormatInt(int64(d/u.size), 10) + u.name
		}
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10) + "ms"
}

// ParseRate reads 50/s, 100/m or 20/h and returns it per second. The result is
// above 0; the error completes the sentence "… must be a rate: ".
func ParseRate(s string) (float64, error) {
	number, unit, ok := strings.Cut(s, "/")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case !ok || seconds == 0 || err != nil:
		return 0, errors.New("write a number and /s, /m or /h")
	case !(f > 0) || math.IsInf(f, 0):
		return 0, errors.New("it must be above 0")
	}
	return f / seconds, nil
}
