package message

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rsctl/rsctl/pkg/spec"
)

// MaxReason bounds a reason: x-rsctl-error on a dead-letter copy holds 1 KiB.
const MaxReason = 1024

// MaxReply is the longest reply of a handler. One is never cut: a longer one is a
// failure.
const MaxReply = 1 << 20

// Printable renders what a hook printed so that it can go into a log or a
// header: at most limit bytes, control characters and bytes that are not UTF-8
// written as escapes. It never forges a second line or a terminal command. A
// backslash stays as it is.
func Printable(s string, limit int) string {
	if len(s) <= limit && Plain(s) {
		return s
	}
	b := make([]byte, 0, min(limit, 2*len(s)))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		end := len(b)
		b = appendRune(b, r, s[i:i+size])
		if len(b)+len(ellipsis) > limit {
			return string(b[:end]) + ellipsis
		}
		i += size
	}
	return string(b)
}

const ellipsis = "…"

// appendRune appends one character, raw being its bytes, or its escape.
func appendRune(b []byte, r rune, raw string) []byte {
	switch {
	case r >= 0x20 && r < 0x7f:
		return append(b, byte(r))
	case r == '\t':
		return append(b, `\t`...)
	case r == utf8.RuneError && len(raw) == 1, r < 0x80:
		return append(b, '\\', 'x', lowerHex[raw[0]>>4], lowerHex[raw[0]&15])
	case unicode.IsPrint(r):
		return append(b, raw...)
	case r < 0x10000:
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return fmt.Appendf(b, `\U%08x`, r)
}

const lowerHex = "0123456789abcdef"

// Plain reports whether s is printable ASCII.
func Plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// HeaderText renders a header's value for places that hold only text, an
// environment variable or an HTTP header: strings and byte arrays as they are,
// numbers and booleans in plain form, arrays and tables as JSON.
func HeaderText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return string(appendValue(nil, v))
}

// StopReason says why a call was cut off: its timeout, or the end of rsctl.
func StopReason(ctx context.Context, timeout time.Duration) string {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "interrupted: rsctl is stopping"
	}
	if timeout <= 0 {
		return "timed out"
	}
	return "timed out after " + spec.FormatDuration(timeout)
}

// JoinReason appends detail to what, within the bound of a reason.
func JoinReason(what, detail string) string {
	if detail == "" {
		return Printable(what, MaxReason)
	}
	return Printable(what+": "+detail, MaxReason)
}
