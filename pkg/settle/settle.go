// Package settle decides how a delivery ends.
//
// [Decide] is a pure function from what is known (the delivery's [Facts], the
// hook's outcome, the queue's [Policy]) to the steps that end the delivery, as
// data. Package runtime executes them and rsctl explain prints them, so one
// table holds for both.
package settle

import (
	"math"
	"strconv"
	"time"
)

// Type is the queue's type; it decides who counts attempts.
type Type string

// Classic queues count nothing, so the runtime counts in the copies' headers;
// quorum queues count returned deliveries themselves.
const (
	Classic Type = "classic"
	Quorum  Type = "quorum"
)

// Policy is what a spec says about one queue, compiled.
type Policy struct {
	Queue       string
	Type        Type
	MaxAttempts int    // 0: no cap
	MaxBody     int64  // bytes of the largest body that a hook gets; 0: any
	DeadLetter  string // queue name; "": none
	// EndsSpent says that the spent messages of a quorum queue end by a copy of
	// ours, which says why, and not by the server's delivery limit.
	EndsSpent bool
	// Limit is the delivery limit of a quorum queue, and OwnRoute says that its
	// own arguments give what is dropped, or past the limit, somewhere to go.
	Limit    Limit
	OwnRoute bool
	// AckOriginal ends an original whose copy is confirmed by an ack instead of
	// a reject.
	AckOriginal bool
	// RetryExchange is where plain retry copies and dead-letter copies of a
	// classic queue are published; "" is the default exchange.
	RetryExchange string
	Delay         *Delay   // nil: none declared
	Backoff       *Backoff // nil: a plain retry stays plain
}

// Mode is what a delay strategy does with the delivery while the time passes.
type Mode int

const (
	// ModeTimer settles the original and holds the copy in the process.
	ModeTimer Mode = iota
	// ModeHold keeps the original unsettled, then retries it.
	ModeHold
	// ModeCopy publishes a copy to a place on the broker, then acks.
	ModeCopy
	// ModeNative requeues; the server waits by its own back-off.
	ModeNative
)

// Delay is a compiled delay strategy.
type Delay struct {
	Strategy string
	Mode     Mode
	Max      time.Duration // a longer delay is clamped; 0: no limit
	// Route returns where a copy waits for d (0 < d <= Max); only with ModeCopy.
	Route func(d time.Duration) Target
}

// Backoff is the delay of a plain retry by attempt number.
type Backoff struct {
	Initial time.Duration
	Factor  float64 // values below 1 count as 1
	Max     time.Duration
	Jitter  float64 // extends the delay by up to this share of it
}

// After returns the delay before the attempt that follows attempt n. The
// jitter argument is in [0,1); it only ever extends the delay.
func (b Backoff) After(n int, jitter float64) time.Duration {
	if b.Initial <= 0 {
		return 0
	}
	// A large n makes the power infinite, which the bounds below bring back.
	d := float64(b.Initial) * math.Pow(math.Max(b.Factor, 1), float64(max(n, 1)-1))
	if b.Max > 0 {
		d = math.Min(d, float64(b.Max))
	}
	d *= 1 + math.Max(b.Jitter, 0)*jitter
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// Facts is what is known about a delivery when its hook has answered.
type Facts struct {
	// Attempt is the number of the attempt that just ended; see [Attempt].
	Attempt int
	// Counted is the count that the delivery's copies brought along; 0 for a
	// message that has never been copied.
	Counted     int
	Redelivered bool
	Jitter      float64 // in [0,1); used with a backoff
}

// Attempt returns the number of the attempt that a delivery is: on a classic
// queue one more than the count its copies brought along, on a quorum queue
// that plus the returns the server counted since the last copy.
func Attempt(t Type, counted int, deliveryCount int64) int {
	if t == Classic {
		return clampInt(int64(counted)) + 1
	}
	sum := int64(clampInt(int64(counted))) + min(max(deliveryCount, 0), math.MaxInt32)
	return clampInt(sum) + 1
}

// clampInt keeps counts where adding to them cannot overflow.
func clampInt(n int64) int { return int(min(max(n, 0), math.MaxInt32-1)) }

// Target is where a copy is published.
type Target struct {
	Exchange string
	Key      string
	// Queue is the queue that the copy is expected to reach first, for messages
	// to people and for expiration rules; "" when it waits in an exchange.
	Queue string
	// Expiration is the per-message TTL; 0: none set by this target.
	Expiration time.Duration
	// XDelay is the x-delay header of a delayed-message exchange; 0: none.
	XDelay time.Duration
	// NotMandatory is set for a delayed-message exchange only: the plugin
	// returns every message it holds as unroutable.
	NotMandatory bool
}

// A Step is one thing to do. The set is closed.
type Step interface{ step() }

// Purpose says what a copy is for; it decides which headers it carries.
type Purpose int

const (
	// ForRetry goes back to its queue at once.
	ForRetry Purpose = iota
	// ForDelay waits first.
	ForDelay
	// ForDeadLetter ends in the dead-letter queue.
	ForDeadLetter
	// ForReply is a hook's answer to the sender of a request. It is no copy and
	// no step that Decide returns; it goes the way of copies, before the ack.
	ForReply
)

type (
	// Copy publishes a copy and waits until the broker has confirmed it.
	Copy struct {
		To      Target
		Purpose Purpose
		// Count goes into x-ruststream-retry-count; not used for a dead letter.
		Count int
		// Reason says why on a dead letter; "" is that its attempts are spent.
		Reason string
		// Bare leaves out the headers that say where the message comes from and why.
		Bare bool
	}
	// Later hands a copy to the in-process timer, which publishes it After the
	// original has been settled.
	Later struct {
		After time.Duration
		Copy  Copy
	}
	// Wait keeps the delivery unsettled.
	Wait struct{ For time.Duration }
	// Pace keeps the delivery unsettled until it is this old.
	Pace struct{ Age time.Duration }
	// Warn says that the spec asks for something that cannot be had.
	Warn struct{ What Warning }

	// Ack is basic.ack.
	Ack struct{}
	// Reject is basic.reject.
	Reject struct{ Requeue bool }
	// HandBack is basic.nack with requeue, once the consumer is cancelled.
	HandBack struct{}
)

func (Copy) step()   {}
func (Later) step()  {}
func (Wait) step()   {}
func (Pace) step()   {}
func (Warn) step()   {}
func (Ack) step()    {}
func (Reject) step() {}

func (HandBack) step() {}

// Warning is a stable name for something worth a log line.
type Warning string

// The warnings a plan may carry.
const (
	WarnDelayDropped Warning = "delay dropped: a quorum queue without a delay requeues at once"
	WarnDelayClamped Warning = "delay clamped to what the strategy can hold"
	WarnDiscarded    Warning = "attempts spent and no dead_letter: the message is discarded unless the queue has a dead-letter route of its own"
)

// RequeueFloor is the least age of a delivery that is plainly requeued a second
// time, so that a message that always fails cannot spin the broker.
const RequeueFloor = 100 * time.Millisecond

// From StormAttempt on, a delivery that is retried at once is at least
// StormFloor old, so that a high cap and a hook that fails within a millisecond
// cannot load the broker: each unsettled delivery, of which prefetch allows so
// many, is retried at most 20 times a second. Before that nothing waits.
const (
	StormAttempt = 10
	StormFloor   = 50 * time.Millisecond
)

// Settles reports whether s ends the delivery.
func Settles(s Step) bool {
	switch s.(type) {
	case Ack, Reject, HandBack:
		return true
	}
	return false
}

// FormatCount renders a count as the copies carry it: decimal text.
func FormatCount(n int) string { return strconv.Itoa(n) }
