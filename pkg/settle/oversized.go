package settle

// ReasonMaxBody says on a dead letter that its body was larger than its queue
// takes.
const ReasonMaxBody = "max_body"

// Oversized reports whether a body of so many bytes is larger than p's queue
// takes. No hook gets such a message, on no attempt.
func (p Policy) Oversized(size int) bool { return p.MaxBody > 0 && int64(size) > p.MaxBody }

// DecideOversized returns the steps that end a delivery whose body is larger than
// its queue takes. With a dead-letter queue it ends there, with the reason; the
// server, which moves the spent messages of a quorum queue, could not say it.
// Else the server drops it, to the queue's own dead-letter route if it has one.
func DecideOversized(p Policy) []Step {
	if p.DeadLetter == "" {
		return []Step{Reject{}}
	}
	return []Step{deadLetterCopy(p, ReasonMaxBody), p.settleCopied()}
}
