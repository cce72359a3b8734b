package cli

import "github.com/rsctl/rsctl/pkg/spec"

// unsupported lists the keys that a spec may hold and that run does not act on.
// Ignoring one would change what happens to messages, so run refuses instead.
// Teaching the runtime a key means deleting its line here.
var unsupported = []struct {
	key  string
	what string // the key as people know it, with what makes it so
	used func(*spec.Queue) bool
}{
	{"batch", "batch with a handler that is no worker", func(q *spec.Queue) bool { return q.Batch != nil && q.Handler.Kind != spec.Worker }},
	{"ordered_by", "ordered_by with batch", func(q *spec.Queue) bool { return q.Batch != nil && q.OrderedBy != nil }},
}

// unsupportedKeys returns the keys of q that run cannot honour; q has a handler.
func unsupportedKeys(q *spec.Queue) []refusal {
	var out []refusal
	for _, u := range unsupported {
		if u.used(q) {
			out = append(out, refusal{q.At(u.key), u.what + ` is not supported by "rsctl run" yet; remove it or do not run this queue`})
		}
	}
	return out
}
