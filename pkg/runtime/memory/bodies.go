// Package memory bounds how many bytes of message bodies are worked on at a time,
// and counts those in hand.
//
// What the broker has delivered is in memory whether anybody works on it or not:
// only prefetch bounds that. What a ceiling bounds is how much of it handlers are
// busy with, each of which may need several times as much, and how much of it
// waits here as copies of messages that are settled already.
package memory

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// Default is the limit of a run that is given none.
const Default = 256_000_000

// Bodies are the message bodies of one run. The nil Bodies has no limit.
type Bodies struct {
	limit     int64
	handled   *Ceiling
	held      *Ceiling
	unsettled atomic.Int64
}

// NewBodies returns ceilings of limit bytes each for the bodies that handlers
// have and for those of held copies. That one was reached is logged once.
func NewBodies(limit int64, log *slog.Logger) *Bodies {
	if limit <= 0 {
		limit = Default
	}
	once := func(text string) func() {
		var said sync.Once
		return func() { said.Do(func() { log.Warn(text, "bytes", limit) }) }
	}
	return &Bodies{
		limit:   limit,
		handled: NewCeiling(limit, once("the bodies that handlers have reach max_in_memory; above it one message is handled at a time")),
		held:    NewCeiling(limit, once("the delayed copies that this process holds reach max_in_memory; further messages wait unacknowledged")),
	}
}

// Handled is the ceiling of what handlers have.
func (b *Bodies) Handled() *Ceiling {
	if b == nil {
		return nil
	}
	return b.handled
}

// Held is the ceiling of what delayed copies take.
func (b *Bodies) Held() *Ceiling {
	if b == nil {
		return nil
	}
	return b.held
}

// Received counts a body of n bytes that has come in, and with a negative n one
// that is settled.
func (b *Bodies) Received(n int) {
	if b != nil {
		b.unsettled.Add(int64(n))
	}
}

// Use is what bodies take, in bytes, and how often something had to wait.
type Use struct{ Limit, Unsettled, Held, Waits int64 }

// Use returns what is so at this moment.
func (b *Bodies) Use() Use {
	return Use{
		Limit: b.limit, Unsettled: b.unsettled.Load(), Held: b.held.InUse(),
		Waits: b.handled.Waits() + b.held.Waits(),
	}
}
