// Package hooks says what a hook, which users call a handler, is: what it is told
// about a delivery and what it may answer. A function is one by [Func]; package
// service calls it.
//
// The package holds types only, so that deciding what an answer means (package
// settle) needs no process and no network. The hooks themselves, one package a
// kind, are below; package kinds builds the one that a spec asks for.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Verdict is the kind of an [Outcome].
type Verdict int

// The zero Verdict is Failed on purpose: a hook that forgets to answer must
// cause a retry, never an acknowledgement.
const (
	Failed     Verdict = iota // did not answer, timed out or crashed; settled as Retry
	Ack                       // processed
	Drop                      // will never succeed
	Retry                     // try again
	RetryAfter                // try again, no sooner than Outcome.Delay
)

// String returns the word a spec or a hook uses for v.
func (v Verdict) String() string {
	switch v {
	case Ack:
		return "ack"
	case Drop:
		return "drop"
	case RetryAfter:
		return "retry_after"
	default:
		return "retry"
	}
}

// Outcome is a hook's answer about one delivery.
type Outcome struct {
	Verdict Verdict
	Delay   time.Duration // with RetryAfter; zero or negative is a plain Retry
	// Reason is one line for people; on a dead-letter copy it becomes
	// x-rsctl-error. It may hold what the hook printed.
	Reason string
	// Reply is published to the delivery's reply_to when the spec asks for it;
	// nil means no reply. Only an Ack is replied to.
	Reply []byte
	// ReplyType is the content type of Reply, at most 255 bytes; "" when unknown.
	ReplyType string
}

// Message is a delivery as a hook sees it. Exchange and RoutingKey are those of
// the first delivery on every attempt, although a retry copy travels through
// another exchange.
//
// A hook may keep Headers and Body, but must not change what is in them: a copy that
// is published for a retry shares them.
type Message struct {
	Queue, Exchange, RoutingKey string
	Attempt                     int // from 1
	MaxAttempts                 int // 0: no cap
	Redelivered                 bool

	MessageID, CorrelationID     string
	ContentType, ContentEncoding string
	Type, AppID, UserID, ReplyTo string
	Expiration                   string // milliseconds as text, as AMQP has it
	Timestamp                    int64  // the raw AMQP value, seconds by convention; 0: none
	Priority                     uint8
	DeliveryMode                 uint8 // 2: persistent; 0: not set

	// Headers holds values that encoding/json accepts: nil, bool, int64,
	// uint64, float64, string, []byte, []any and map[string]any of these. A
	// timestamp is its raw int64, a decimal its text.
	Headers map[string]any
	Body    []byte
}

// A Hook handles one message at a time and is called from many goroutines.
//
// Handle must return soon after ctx is done. The Outcome says how it went; any
// error is a failed attempt, as an Outcome that is Failed with that Reason, unless
// it wraps [ErrUnavailable]: then the hook could not be run at all, the message is
// not to blame, and no attempt is spent.
type Hook interface {
	Handle(ctx context.Context, m Message) (Outcome, error)
}

// A BatchHook can handle several messages in one call, all of one queue.
//
// HandleBatch returns one outcome for each message, in their order; what other
// numbers mean says [Spread]. An error means what it means for [Hook], and that no
// message was handled.
type BatchHook interface {
	HandleBatch(ctx context.Context, ms []Message) ([]Outcome, error)
}

// Spread turns what a hook answered to n messages into one outcome for each: a
// single outcome holds for all, one per message stands as it is, and any other
// number fails them all, since it cannot be known which was meant for which.
func Spread(answer []Outcome, n int) []Outcome {
	switch len(answer) {
	case n:
		return answer
	case 1:
		return slices.Repeat(answer, n)
	}
	return slices.Repeat([]Outcome{{Reason: fmt.Sprintf("malformed answer: %d outcomes for %d messages", len(answer), n)}}, n)
}

// A Checker can tell before the first message whether it could be run. The
// error is one line that names what is wrong and what to do.
type Checker interface {
	Check(ctx context.Context) error
}

// A Prober can try itself out without a message, for example by starting a
// process. It may have effects that a [Checker] must not have.
type Prober interface {
	Probe(ctx context.Context) error
}

// A Limiter can handle only so many calls at a time; more would wait, and their
// timeout would run meanwhile.
type Limiter interface {
	Limit() int // at least 1
}

// A Closer holds processes or connections that Close ends. Close returns after
// the last of them has ended.
type Closer interface {
	Close() error
}

// ErrUnavailable is wrapped by every error that means "the hook, not the
// message, is broken": command not found, connection refused, no such host.
var ErrUnavailable = errors.New("handler unavailable")

// UnavailableError says what could not be run and why.
type UnavailableError struct {
	Target string // the command or URL, safe to print
	Err    error
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Target, e.Err) }

// Unwrap lets errors.Is find both the cause and ErrUnavailable.
func (e *UnavailableError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }
