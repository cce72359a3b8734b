package message

import "github.com/rsctl/rsctl/pkg/hooks"

// TraceOfAll is [hooks.TraceContext] for a batch: what its messages have in
// common, as they do when the batch itself is part of a trace.
func TraceOfAll(ms []hooks.Message) (parent, state string) {
	parent, state = hooks.TraceContext(ms[0].Headers)
	for i := range ms[1:] {
		if p, s := hooks.TraceContext(ms[i+1].Headers); p != parent || s != state {
			return "", ""
		}
	}
	return parent, state
}
