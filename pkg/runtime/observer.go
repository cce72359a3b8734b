package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// An Observer is told what happens at the edges of a run, to count and to show
// it. Observe is called from many goroutines, some of which hold locks: it must
// return at once and must not call back into the runtime.
type Observer interface {
	Observe(e Event)
}

// Observers tells each of its members, in order.
type Observers []Observer

// Observe implements [Observer].
func (o Observers) Observe(e Event) {
	for _, one := range o {
		one.Observe(e)
	}
}

// An Event is one thing that happened. The set is closed.
type Event interface{ event() }

// What becomes of a delivery. Every Received is followed by one Settled.
type (
	// Received says that a delivery has come in.
	Received struct{ Queue string }
	// HookStarted says that a hook was called; one that is called with a batch is
	// told for each message.
	HookStarted struct {
		Queue   string
		Attempt int // from 1; see [settle.Attempt]
		// Lag is how long ago the message was published. It is 0 when unknown:
		// without the timestamp property, on a later attempt, and on a message
		// that was delivered before.
		Lag time.Duration
	}
	// HookEnded follows every HookStarted.
	HookEnded struct {
		Queue   string
		Attempt int
		Took    time.Duration
		Verdict hooks.Verdict // without meaning when Err is set
		Err     error         // the hook could not be run at all
	}
	// Settled says how a delivery has ended.
	Settled struct {
		Queue  string
		Ending Ending
		// Spent says that the message has failed its last attempt and was given
		// up: dead-lettered, or discarded where there is nowhere to send it.
		Spent bool
	}
)

// Ending is the end of a delivery: the word of the hook's outcome when its
// settlement was sent, or one of two that no hook decides.
type Ending string

// The endings. A failed hook ends as a retry.
const (
	EndedAck        Ending = "ack"
	EndedDrop       Ending = "drop"
	EndedRetry      Ending = "retry"
	EndedRetryAfter Ending = "retry_after"
	// EndedHandedBack is a delivery that no hook has seen.
	EndedHandedBack Ending = "handed_back"
	// EndedLost is a delivery whose channel ended first; the broker delivers the
	// message again, whatever its hook has answered.
	EndedLost Ending = "lost"
)

// Endings lists every Ending.
func Endings() []Ending {
	return []Ending{EndedAck, EndedDrop, EndedRetry, EndedRetryAfter, EndedHandedBack, EndedLost}
}

// What becomes of copies.
type (
	// CopyStarted says that a copy is about to be published. It may wait for a
	// connection, or for a broker that blocks publishing.
	CopyStarted struct {
		Queue   string // whose copy it is
		Purpose settle.Purpose
	}
	// CopyEnded follows every CopyStarted. A held copy that fails is tried again,
	// and each try counts.
	CopyEnded struct {
		Queue   string
		Purpose settle.Purpose
		Result  CopyResult
	}
	// CopyHeld says that the process now holds a copy until its delay is over.
	CopyHeld struct{ Queue string }
	// CopyReleased says that a held copy has arrived where it belongs.
	CopyReleased struct{ Queue string }
)

// CopyResult is what became of one try to publish a copy.
type CopyResult string

// The results. Only the first settles the original as decided.
const (
	CopyConfirmed CopyResult = "confirmed"
	CopyReturned  CopyResult = "returned" // no such queue, or no binding to it
	CopyNacked    CopyResult = "nacked"   // the queue is full or has failed
	CopyRefused   CopyResult = "refused"  // the broker closed the channel: no permission, no such exchange
	CopyTooLarge  CopyResult = "too_large"
	CopyForbidden CopyResult = "not_allowed"   // a reply to an address that none is sent to
	CopyTimedOut  CopyResult = "timed_out"     // no confirm in time
	CopyUnknown   CopyResult = "unknown"       // the connection was lost before the confirm
	CopyNotSent   CopyResult = "no_connection" // none to publish on in time
	CopyGivenUp   CopyResult = "given_up"      // the original's channel ended, or the process stops
)

// CopyResults lists every CopyResult.
func CopyResults() []CopyResult {
	return []CopyResult{
		CopyConfirmed, CopyReturned, CopyNacked, CopyRefused, CopyTooLarge,
		CopyForbidden, CopyTimedOut, CopyUnknown, CopyNotSent, CopyGivenUp,
	}
}

// errBadAddress is why a reply is not sent: its address gets none.
var errBadAddress = errors.New("not a reply address")

// resultOf names what publishing a copy ended with. A context that ends may be
// the reason behind any other error's text, so the sentinels are asked first.
func resultOf(ctx context.Context, err error) CopyResult {
	for _, known := range []struct {
		err    error
		result CopyResult
	}{
		{confirm.ErrReturned, CopyReturned},
		{confirm.ErrNacked, CopyNacked},
		{confirm.ErrTooLarge, CopyTooLarge},
		{confirm.ErrRefused, CopyRefused},
		{errBadAddress, CopyForbidden},
		{confirm.ErrNoConfirm, CopyTimedOut},
		{confirm.ErrUnknown, CopyUnknown},
		{confirm.ErrNotReady, CopyNotSent},
	} {
		if errors.Is(err, known.err) {
			return known.result
		}
	}
	switch {
	case err == nil:
		return CopyConfirmed
	case ctx.Err() != nil:
		return CopyGivenUp
	}
	return CopyUnknown
}

// What becomes of connections and queues. Until the first Consuming, a queue is
// not consumed.
type (
	// Connected says that a connection is open; Purpose is "consume",
	// "publish" or "reply". Queues are the ones that it consumes, which are not consumed yet;
	// many queues take several connections.
	Connected struct {
		Purpose string
		Queues  []string
	}
	// Disconnected says that there is no connection. It is told again for each
	// failed try. Err is nil when the runtime itself has closed it.
	Disconnected struct {
		Purpose string
		Queues  []string // as in Connected
		Err     error
	}
	// Blocked says that the broker takes no publishings: copies wait.
	Blocked struct{ Reason string }
	// Unblocked ends Blocked.
	Unblocked struct{}
	// Consuming says that a consumer of the queue is registered.
	Consuming struct{ Queue string }
	// NotConsuming says that there is no consumer. It is told again for each
	// failed try. Err is nil when the runtime itself has ended it.
	NotConsuming struct {
		Queue string
		Err   error
	}
	// Paused says that the queue's hook cannot be run; deliveries wait. It is told
	// again for each failed probe.
	Paused struct {
		Queue string
		Err   error
	}
	// Resumed ends Paused.
	Resumed struct{ Queue string }
	// CopyStalled says that one more copy cannot arrive and waits for its next try;
	// no hook of the queue is called while any does.
	CopyStalled struct {
		Queue string
		Err   error
	}
	// CopyMoved follows every CopyStalled, once the copy has arrived or was given up.
	CopyMoved struct{ Queue string }
	// Draining says that nothing more is taken; it comes once, at the end.
	Draining struct{ Cause error }
)

func (Received) event()     {}
func (HookStarted) event()  {}
func (HookEnded) event()    {}
func (Settled) event()      {}
func (CopyStarted) event()  {}
func (CopyEnded) event()    {}
func (CopyHeld) event()     {}
func (CopyReleased) event() {}
func (Connected) event()    {}
func (Disconnected) event() {}
func (Blocked) event()      {}
func (Unblocked) event()    {}
func (Consuming) event()    {}
func (NotConsuming) event() {}
func (Paused) event()       {}
func (Resumed) event()      {}
func (CopyStalled) event()  {}
func (CopyMoved) event()    {}
func (Draining) event()     {}

// tell is how the runtime reaches an observer. The type parameter keeps the
// event from being allocated when there is none.
func tell[E Event](o Observer, e E) {
	if o != nil {
		o.Observe(e)
	}
}
