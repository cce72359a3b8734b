package runtime

import "context"

// lifetimes are the two kinds of stop. The end of intake takes no new delivery and
// lets running hooks finish; the end of work stops the hooks as well.
type lifetimes struct{ intake, work context.Context }

func (s lifetimes) stopping() bool { return s.intake.Err() != nil }
