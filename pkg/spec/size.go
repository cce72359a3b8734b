package spec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

const sizeUnits = "B, kB, MB and GB (powers of 1000), KiB, MiB and GiB (powers of 1024)"

var (
	sizeParts = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$`)
	sizes     = map[string]int64{
		"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	}
)

// DefaultMaxInMemory is max_in_memory where a spec does not say.
const DefaultMaxInMemory = 256_000_000

// ParseSize reads a number of bytes as a spec writes it: 512KiB, 10MB, 1.5GB.
// There is no default unit. The result is at least 1; the error completes the
// sentence "… must be a size: ".
func ParseSize(s string) (int64, error) {
	m := sizeParts.FindStringSubmatch(s)
	if m == nil {
		return 0, errors.New("write a number and a unit, without a space")
	}
	unit, known := sizes[m[2]]
	number, err := strconv.ParseFloat(m[1], 64)
	switch n := number * float64(unit); {
	case m[2] == "":
		return 0, errors.New("missing unit")
	case !known:
		return 0, fmt.Errorf("unknown unit %s", quoteShort(m[2]))
	case err != nil, n >= math.MaxInt64:
		return 0, errors.New("it is larger than 8 EiB")
	case n < 1:
		return 0, errors.New("it is less than one byte")
	default:
		return int64(n), nil
	}
}

// FormatSize writes n with the largest unit that divides it: 10MB, 512KiB.
func FormatSize(n int64) string {
	for _, unit := range []string{"GiB", "GB", "MiB", "MB", "KiB", "kB"} {
		if size := sizes[unit]; n >= size && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// size reads a number of bytes.
func (f fields) size(key string, absent int64) int64 {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	n, err := ParseSize(v.value)
	if err != nil {
		message := fmt.Sprintf("%s must be a size, got %s", v.label, v.shown())
		if !v.inserted {
			message += ": " + err.Error()
		}
		f.refuse(v, "value", message, "units are "+sizeUnits)
		return absent
	}
	return n
}
