package spec

import "fmt"

// A quorum queue is durable, shared and permanent; the server refuses anything
// else, and x-max-priority too, with 406.
func checkQuorumOptions(s *Spec, report report) {
	for q := range s.ofType(Quorum) {
		refuse := func(key, why string) {
			if q.sound(key) {
				report(q.At(key), fmt.Sprintf("queue %q is a quorum queue, which %s", q.shown(), why), "remove the key, or use type: classic")
			}
		}
		if !q.Durable {
			refuse("durable", "is always durable")
		}
		if q.Exclusive {
			refuse("exclusive", "cannot be exclusive")
		}
		if q.AutoDelete {
			refuse("auto_delete", "cannot be deleted automatically")
		}
		if q.RetryPublisher != nil {
			refuse("retry_publisher", "publishes no retry copies: the server counts its returned deliveries")
		}
		if _, ok := q.Arguments["x-max-priority"]; ok {
			refuse("arguments.x-max-priority", "takes no x-max-priority")
		}
	}
}
