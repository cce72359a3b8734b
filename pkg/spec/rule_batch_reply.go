package spec

import "fmt"

// A command that gets a batch has one standard output, which cannot be told apart
// into replies.
func checkBatchReply(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Batch != nil && q.Handler != nil && q.Handler.Kind == Exec && q.Handler.Reply && q.sound("batch", "handler") {
			report(q.At("handler.reply"), fmt.Sprintf("queue %q asks a command for replies to a batch: it has one standard output for all messages", q.shown()),
				"remove batch or reply; a worker and an http handler can reply to each message of a batch")
		}
	}
}
