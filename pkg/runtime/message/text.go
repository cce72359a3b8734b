package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxError is the most bytes of x-rsctl-error: headers share one frame.
const maxError = 1024

// oneLine returns s as at most maxError bytes of valid UTF-8 on one line: runs
// of white space and of control characters become one space.
func oneLine(s string) string {
	s = s[:min(len(s), 4*maxError)] // a hook may have printed a megabyte
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, breaksLine), " ")
	if len(s) <= maxError {
		return s
	}
	end := maxError
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func breaksLine(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
