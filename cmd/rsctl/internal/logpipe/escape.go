package logpipe

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Unsafe reports whether a terminal or a viewer may act on r instead of showing
// it: control characters (C0, DEL, C1), line and paragraph separators, and what
// changes the direction of the text.
func Unsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == 0x061C, r == 0x200E, r == 0x200F:
		return true
	case r >= 0x2028 && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Escaping returns a writer that hands lines on to w with unsafe characters as
// \uXXXX. In JSON, where they can stand in strings only, the value stays the
// same. Line feeds and tabs are left alone: the forms of the log escape them.
func Escaping(w io.Writer) io.Writer { return escaping{w} }

type escaping struct{ w io.Writer }

func (e escaping) Write(p []byte) (int, error) {
	if _, err := e.w.Write(Escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escape returns line with unsafe characters as \uXXXX; line itself when there
// are none.
func Escape(line []byte) []byte {
	start := firstUnsafe(line)
	if start < 0 {
		return line
	}
	out := append(make([]byte, 0, len(line)+32), line[:start]...)
	for rest := line[start:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if escapes(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

func escapes(r rune) bool { return r != '\n' && r != '\t' && Unsafe(r) }

// firstUnsafe looks at the bytes by which an unsafe character can begin.
func firstUnsafe(line []byte) int {
	for i, b := range line {
		if b >= 0x20 && b < 0x7F || b == '\n' || b == '\t' {
			continue
		}
		if b < 0x80 {
			return i
		}
		if b == 0xC2 || b == 0xD8 || b == 0xE2 {
			if r, _ := utf8.DecodeRune(line[i:]); escapes(r) {
				return i
			}
		}
	}
	return -1
}
