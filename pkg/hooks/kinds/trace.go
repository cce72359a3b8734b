package kinds

import (
	"regexp"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// traceparent is the form of the header by W3C Trace Context, of version 00 and
// of later ones, which may add fields.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]{1,200})?$`)

// maxTraceState is the longest tracestate that is passed on; everybody must be
// able to carry 512 bytes, and nobody more.
const maxTraceState = 512

// traceOf returns the trace context that m brings along, to be passed on as it
// is: what a library of OpenTelemetry has put into its headers. Both are "" when
// there is none, or none that anybody could read.
func traceOf(m *hooks.Message) (parent, state string) {
	if parent = headerText(m.Headers["traceparent"]); !traceparent.MatchString(parent) {
		return "", ""
	}
	state = headerText(m.Headers["tracestate"])
	if len(state) > maxTraceState || !plain(state) {
		state = ""
	}
	return parent, state
}

// traceOfAll is traceOf for a batch: what its messages have in common, as they
// do when the batch itself is part of a trace.
func traceOfAll(ms []hooks.Message) (parent, state string) {
	parent, state = traceOf(&ms[0])
	for i := range ms[1:] {
		if p, s := traceOf(&ms[i+1]); p != parent || s != state {
			return "", ""
		}
	}
	return parent, state
}
