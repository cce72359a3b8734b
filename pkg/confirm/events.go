package confirm

import "time"

// Events are called when something happens to the connection of a [Publisher], from
// its goroutines: they must return at once. Each may be nil.
type Events struct {
	// Connected: a connection is open.
	Connected func()
	// Disconnected: there is no connection, and err says why. It is called again for
	// each try that fails; retryIn is the time to the next one. At the end of Run err
	// is nil, and nothing is tried again.
	Disconnected func(err error, retryIn time.Duration)
	// Blocked: the broker takes no publishings, for a memory or disk alarm.
	Blocked func(reason string)
	// Unblocked ends Blocked, also when the connection ends.
	Unblocked func()
}

func (e Events) connected() {
	if e.Connected != nil {
		e.Connected()
	}
}

func (e Events) disconnected(err error, retryIn time.Duration) {
	if e.Disconnected != nil {
		e.Disconnected(err, retryIn)
	}
}

func (e Events) blocked(reason string) {
	if e.Blocked != nil {
		e.Blocked(reason)
	}
}

func (e Events) unblocked() {
	if e.Unblocked != nil {
		e.Unblocked()
	}
}
