package settle

// ReasonUnreadable says on a dead letter that the headers of its message could not
// be read, and are not there.
const ReasonUnreadable = "unreadable"

// Unseen reports whether c is for a message that ends without its hook.
func (c Copy) Unseen() bool { return c.Reason == ReasonMaxBody || c.Reason == ReasonUnreadable }

// AfterCopy is how an original ends early whose copy is in the dead-letter queue.
func (p Policy) AfterCopy() Step { return p.settleCopied() }
