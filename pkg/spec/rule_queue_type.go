package spec

import "fmt"

// The type decides what a retry is, so it is never left to the virtual host's
// default queue type.
func checkQueueType(s *Spec, report report) {
	for i := range s.Queues {
		if q := &s.Queues[i]; q.Type == "" && q.sound("type") {
			report(q.Pos, fmt.Sprintf("queue %q has no type", q.shown()), "write type: quorum or type: classic, here or in defaults")
		}
	}
}
