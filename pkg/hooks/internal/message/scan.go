package message

// scan reads the common line, an object of known fields whose values are text
// without escapes and different, and allocates nothing. It reports false for any
// other.
func (a *object) scan(line []byte) bool {
	rest, ok := cutToken(line, '{')
	for ok {
		var name, value []byte
		if name, rest, ok = cutText(rest); !ok {
			return false
		}
		if rest, ok = cutToken(rest, ':'); !ok {
			return false
		}
		if value, rest, ok = cutText(rest); !ok {
			return false
		}
		to := a.field(name)
		if to == nil || *to != nil {
			return false // a field that is there twice is for the thorough reader
		}
		*to = value
		if end, closed := cutToken(rest, '}'); closed {
			return len(trimJSON(end)) == 0
		}
		rest, ok = cutToken(rest, ',')
	}
	return false
}

func trimJSON(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

func cutToken(b []byte, c byte) (rest []byte, ok bool) {
	b = trimJSON(b)
	if len(b) == 0 || b[0] != c {
		return b, false
	}
	return b[1:], true
}

// cutText reads a JSON string of Printable ASCII without escapes.
func cutText(b []byte) (text, rest []byte, ok bool) {
	b, ok = cutToken(b, '"')
	if !ok {
		return nil, b, false
	}
	for i, c := range b {
		switch {
		case c == '"':
			return b[:i], b[i+1:], true
		case c == '\\' || c < 0x20 || c >= 0x7f:
			return nil, b, false
		}
	}
	return nil, b, false
}
