package runtime

import "sync/atomic"

// shortfall counts what a drain has not brought to its end.
type shortfall struct {
	draining atomic.Bool
	results  atomic.Int64
	alone    atomic.Bool // the drain ended without a connection on which results go out
}

// result notes a delivery whose hook has answered and that could not be settled.
// While the process goes on, and where it has connected anew, the message comes
// again to it.
func (s *shortfall) result() {
	if s != nil && s.draining.Load() {
		s.results.Add(1)
	}
}
