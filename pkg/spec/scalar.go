package spec

import (
	"regexp"
	"strings"
)

// class is what a plain scalar is. YAML 1.1 and 1.2 read many plain words
// differently (010 is 8 or 10, no is false or "no", 12:30 is 750 or "12:30"),
// so only what every reader agrees on has a class that can be used; the others
// are refused with a hint.
type class int

const (
	classString class = iota
	classNull
	classBool      // true, false
	classInt       // plain decimal
	classFloat     // plain decimal with a point
	classOddBool   // yes, no, on, off
	classOddNumber // octal, hexadecimal, exponent, underscore, leading zero, plus, .inf
	classTime      // 2024-01-01
	classBase60    // 12:30:45
)

var (
	plainInt   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	plainFloat = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)
	oddNumber  = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|` +
		`[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
	timestamp = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)
	base60    = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
)

// maxDigits keeps absurd numbers away from arbitrary-precision arithmetic.
const maxDigits = 40

func classify(s string) class {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return classNull
	case "true", "false":
		return classBool
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off":
		return classOddBool
	}
	if !strings.ContainsAny(s[:1], "0123456789+-.") {
		return classString
	}
	return classifyNumber(s)
}

func classifyNumber(s string) class {
	switch {
	case len(s) <= maxDigits && plainInt.MatchString(s):
		return classInt
	case len(s) <= maxDigits && plainFloat.MatchString(s):
		return classFloat
	case oddNumber.MatchString(s):
		return classOddNumber
	case timestamp.MatchString(s):
		return classTime
	case base60.MatchString(s):
		return classBase60
	}
	return classString
}

// what names the class to a person.
func (c class) what() string {
	switch c {
	case classBool, classOddBool:
		return "true or false"
	case classInt, classFloat, classOddNumber, classBase60:
		return "a number"
	case classTime:
		return "a date"
	case classNull:
		return "nothing"
	}
	return "text"
}

// usable reports whether every YAML reader agrees on the value.
func (c class) usable() bool { return c <= classFloat && c != classNull }
