package cli

import "github.com/rsctl/rsctl/pkg/spec"

// unsupported lists the keys that a spec may hold and that run does not act on.
// Ignoring one would change what happens to messages, so run refuses instead.
// Teaching the runtime a key means deleting its line here.
var unsupported = []struct {
	key  string
	used func(*spec.Queue) bool
}{
	{"batch", func(q *spec.Queue) bool { return q.Batch != nil }},
	{"ordered_by", func(q *spec.Queue) bool { return q.OrderedBy != nil }},
	{"rate", func(q *spec.Queue) bool { return q.Rate > 0 }},
	{"breaker", func(q *spec.Queue) bool { return q.Breaker != nil }},
	{"handler.on_unavailable", writes("handler.on_unavailable")},
}

// writes is for keys whose default cannot be told from the written value.
func writes(key string) func(*spec.Queue) bool {
	return func(q *spec.Queue) bool {
		_, written := q.Keys[key]
		return written
	}
}

// unsupportedKeys returns the keys of q that run cannot honour; q has a handler.
func unsupportedKeys(q *spec.Queue) []refusal {
	var out []refusal
	for _, u := range unsupported {
		if u.used(q) {
			out = append(out, refusal{q.At(u.key), u.key + ` is not supported by "rsctl run" yet; remove it or do not run this queue`})
		}
	}
	return out
}
