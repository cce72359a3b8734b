package exchange

import (
	"bytes"
	"slices"
)

// MayBeRequest reports whether some server might read a request in body,
// wherever it begins to read and however little it asks of one: an HTTP version, a
// method, a word and a path, or an empty line, which ends headers. A method or a
// path makes a request of HTTP/0.9 by itself and one of HTTP/1.1 together with what
// comes next on the connection. False alarms cost a connection.
func MayBeRequest(body []byte) bool {
	return anyAt(body, '/', isRequestLine) || anyAt(body, ' ', endsMethod) || anyAt(body, '\t', endsMethod) ||
		bytes.Contains(body, []byte("\n\n")) || bytes.Contains(body, []byte("\n\r\n"))
}

// anyAt reports whether something is so at any place of c but the first.
func anyAt(body []byte, c byte, is func(body []byte, at int) bool) bool {
	for at := 1; at < len(body); at++ {
		n := bytes.IndexByte(body[at:], c)
		if n < 0 {
			return false
		}
		if at += n; is(body, at) {
			return true
		}
	}
	return false
}

// isRequestLine reports whether the slash at that place is one of a version or
// begins a target.
func isRequestLine(body []byte, at int) bool {
	switch last := body[at-1]; {
	case last|0x20 == 'p':
		return endsFold(body[:at], "http")
	case last == ':', isBlank(last):
		return beginsTarget(body, at)
	}
	return false
}

var methods = [][]byte{
	[]byte("GET"), []byte("POST"), []byte("PUT"), []byte("HEAD"), []byte("DELETE"), []byte("PATCH"), []byte("OPTIONS"),
	[]byte("TRACE"), []byte("CONNECT"),
}

func endsMethod(body []byte, at int) bool {
	return isUpper(body[at-1]) && slices.ContainsFunc(methods, func(method []byte) bool { return bytes.HasSuffix(body[:at], method) })
}

// beginsTarget reports whether the slash at that place can begin the target of a
// request: after a word and a blank, with or without http: before it.
func beginsTarget(body []byte, at int) bool {
	before, isEnd := body[:at], isLetter
	switch {
	case endsFold(before, "http:"):
		before, isEnd = before[:at-5], isUpper // prose is full of addresses
	case endsFold(before, "https:"):
		before, isEnd = before[:at-6], isUpper
	case at+1 < len(body) && body[at+1] == '>': // <br />
		return false
	}
	word := len(before)
	for word > 0 && isBlank(before[word-1]) {
		word--
	}
	return word > 0 && word < len(before) && isEnd(before[word-1])
}

func endsFold(b []byte, word string) bool {
	return len(b) >= len(word) && bytes.EqualFold(b[len(b)-len(word):], []byte(word))
}

// isBlank knows the blanks of Latin-1, too, at which some servers split.
func isBlank(c byte) bool  { return c <= ' ' || c == 0x7f || c == 0x85 || c == 0xa0 }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }
