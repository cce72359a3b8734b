package runtime

import (
	"time"
)

// The keys of log attributes. They are an interface: docs/operations.md lists
// them, and a test holds the two together.
const (
	keyQueue       = "queue"
	keyMessage     = "message_id"
	keyAttempt     = "attempt"
	keyError       = "error"
	keyReason      = "reason"
	keyExchange    = "exchange"
	keyRoutingKey  = "routing_key"
	keyTarget      = "target"
	keyPurpose     = "purpose"
	keyOutcome     = "outcome"
	keyNext        = "next"
	keyRedelivered = "redelivered"
	keyHookAge     = "handler_age"
	keyIn          = "retry_in"
	keyCount       = "count"
	keyConsumerTag = "consumer_tag"
	keyPausedFor   = "paused_for"
	keyNotLogged   = "not_logged"
	keyBytes       = "bytes"
	keyStack       = "stack"
)

// sleep waits for d or until a stop channel closes; it reports whether d passed.
func sleep(d time.Duration, stop ...<-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	var first, second <-chan struct{}
	if len(stop) > 0 {
		first = stop[0]
	}
	if len(stop) > 1 {
		second = stop[1]
	}
	select {
	case <-t.C:
		return true
	case <-first:
		return false
	case <-second:
		return false
	}
}
