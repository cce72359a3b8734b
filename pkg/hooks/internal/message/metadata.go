package message

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// AppendMetadata appends everything known about m except its body as one JSON
// object on one line. It cannot fail: a message must not be blamed for a value
// that JSON has no form for. Every field is always there; "", 0 and {} stand
// for "not set".
//
// Header values keep their kind, with these exceptions: byte arrays, and
// strings that are not UTF-8, are {"base64": "…"}; floats that JSON lacks are
// "NaN", "Infinity" and "-Infinity". Outside of header values, bytes that are
// not UTF-8 become U+FFFD.
func AppendMetadata(b []byte, m *hooks.Message) []byte {
	b = append(b, '{')
	b = appendMetadataFields(b, m)
	return append(b, '}')
}

// AppendMetadataList appends the metadata of each message as a JSON array.
func AppendMetadataList(b []byte, ms []hooks.Message) []byte {
	b = append(b, '[')
	for i := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendMetadata(b, &ms[i])
	}
	return append(b, ']')
}

// appendMetadataFields is AppendMetadata without the braces.
func appendMetadataFields(b []byte, m *hooks.Message) []byte {
	b = appendText(append(b, `"queue":`...), m.Queue)
	b = appendText(append(b, `,"exchange":`...), m.Exchange)
	b = appendText(append(b, `,"routing_key":`...), m.RoutingKey)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(m.Attempt), 10)
	b = strconv.AppendInt(append(b, `,"max_attempts":`...), int64(m.MaxAttempts), 10)
	b = strconv.AppendBool(append(b, `,"redelivered":`...), m.Redelivered)
	b = appendText(append(b, `,"message_id":`...), m.MessageID)
	b = appendText(append(b, `,"correlation_id":`...), m.CorrelationID)
	b = appendText(append(b, `,"content_type":`...), m.ContentType)
	b = appendText(append(b, `,"content_encoding":`...), m.ContentEncoding)
	b = appendText(append(b, `,"type":`...), m.Type)
	b = strconv.AppendInt(append(b, `,"timestamp":`...), m.Timestamp, 10)
	b = strconv.AppendUint(append(b, `,"priority":`...), uint64(m.Priority), 10)
	b = strconv.AppendUint(append(b, `,"delivery_mode":`...), uint64(m.DeliveryMode), 10)
	b = appendText(append(b, `,"app_id":`...), m.AppID)
	b = appendText(append(b, `,"user_id":`...), m.UserID)
	b = appendText(append(b, `,"reply_to":`...), m.ReplyTo)
	b = appendText(append(b, `,"expiration":`...), m.Expiration)
	return appendTable(append(b, `,"headers":`...), m.Headers)
}

func appendTable(b []byte, table map[string]any) []byte {
	if len(table) == 0 {
		return append(b, "{}"...)
	}
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(table)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendValue(b, table[name])
	}
	return append(b, '}')
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case string:
		if !utf8.ValidString(v) {
			return appendBase64(b, []byte(v))
		}
		return appendText(b, v)
	case []byte:
		return appendBase64(b, v)
	case map[string]any:
		return appendTable(b, v)
	case []any:
		return appendArray(b, v)
	}
	return appendText(b, fmt.Sprint(v))
}

func appendArray(b []byte, items []any) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, item)
	}
	return append(b, ']')
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

func appendBase64(b, data []byte) []byte {
	b = append(b, `{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `"}`...)
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size, escaped := 1, ""
		if c < utf8.RuneSelf {
			escaped = escapeJSON(c)
		} else if r, n := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && n == 1 {
			escaped = `\ufffd`
		} else {
			size, escaped = n, s[i:i+n]
		}
		b = append(append(b, s[start:i]...), escaped...)
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func escapeJSON(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return `\u00` + string([]byte{lowerHex[c>>4], lowerHex[c&15]})
}

// appendUTF8 is appendText for bytes that are known to be UTF-8.
func appendUTF8(b, s []byte) []byte { return append(appendEscaped(append(b, '"'), s), '"') }

// appendEscaped is appendUTF8 without the quotes.
func appendEscaped(b, s []byte) []byte {
	start := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(append(b, s[start:i]...), escapeJSON(c)...)
		start = i + 1
	}
	return append(b, s[start:]...)
}
