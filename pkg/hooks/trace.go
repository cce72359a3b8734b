package hooks

// The headers of W3C Trace Context, as libraries of OpenTelemetry put them into a
// message.
const (
	TraceParentHeader = "traceparent"
	TraceStateHeader  = "tracestate"
)

const (
	// parentLen is the length of a traceparent of version 00.
	parentLen = len("00-") + 32 + len("-") + 16 + len("-01")
	// maxParentMore is the longest addition of a later version that is accepted.
	maxParentMore = 200
	// maxTraceState is the longest tracestate that is passed on: every system
	// must be able to carry 512 bytes, and need not carry more.
	maxTraceState = 512
)

// TraceContext returns the trace context that a message's headers bring along, to
// be passed on as it is. Text and byte arrays count alike. Both results are "" when
// there is no traceparent, or none in the form of W3C Trace Context; state is ""
// also when it is longer than 512 bytes or holds more than visible ASCII and
// blanks.
func TraceContext(headers map[string]any) (parent, state string) {
	if parent = headerString(headers[TraceParentHeader]); !isTraceParent(parent) {
		return "", ""
	}
	if state = headerString(headers[TraceStateHeader]); len(state) > maxTraceState || !visible(state, ' ') {
		state = ""
	}
	return parent, state
}

func headerString(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// isTraceParent reports whether s has the form of a traceparent; one of a later
// version may have more at its end.
func isTraceParent(s string) bool {
	if len(s) < parentLen || s[:2] == "ff" || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	if more := s[parentLen:]; more != "" {
		if s[:2] == "00" || more[0] != '-' || len(more) == 1 || len(more) > maxParentMore+1 || !visible(more, '!') {
			return false
		}
	}
	trace, span := s[3:35], s[36:52]
	return isHex(s[:2]) && isHex(trace) && isHex(span) && isHex(s[53:55]) && !zeros(trace) && !zeros(span)
}

// visible reports whether s is ASCII from the given character to the tilde.
func visible(s string, from byte) bool {
	for i := range len(s) {
		if s[i] < from || s[i] > '~' {
			return false
		}
	}
	return true
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}
