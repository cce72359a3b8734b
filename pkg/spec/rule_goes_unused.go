package spec

import "fmt"

const argumentExpires = "x-expires"

// GoesUnused reports whether the spec lets the broker delete the queue, with what
// it holds, when nobody consumes it.
func (q *Queue) GoesUnused() bool {
	_, expires := q.Arguments[argumentExpires]
	return q.AutoDelete || expires
}

// A queue that goes with its last consumer goes with each stop of the last process,
// each lost connection and each restart. A pause keeps a consumer, which
// consumer.exclusive does not allow. An exclusive queue goes with its connection
// anyway.
func checkGoesUnused(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if !q.GoesUnused() || q.Handler == nil || q.Exclusive || !q.sound("auto_delete", "arguments", "exclusive") {
			continue
		}
		key, when := "auto_delete", "when the last process stops or loses its connection"
		if !q.AutoDelete {
			key, when = "arguments."+argumentExpires, "when no process has consumed it for as long as x-expires says"
		}
		hint := "remove " + argumentOr(key) + ", or keep in it only what may be lost"
		if q.Consumer.Exclusive {
			hint += "; without consumer.exclusive at least a pause keeps it"
		}
		report(q.At(key), fmt.Sprintf("queue %q is deleted with the messages it holds %s", q.shown(), when), hint)
	}
}

func argumentOr(key string) string {
	if key == "auto_delete" {
		return key
	}
	return argumentExpires
}
