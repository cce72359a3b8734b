package hooks

import "context"

// Func is a function as a [Hook]. It is called from many goroutines at a time.
type Func func(ctx context.Context, m Message) (Outcome, error)

// Handle implements [Hook].
func (f Func) Handle(ctx context.Context, m Message) (Outcome, error) { return f(ctx, m) }
