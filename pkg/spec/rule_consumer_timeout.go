package spec

import (
	"fmt"
	"math"
	"time"
)

// serverTimeout is how long a server waits for an acknowledgement unless it is
// configured otherwise. After it the channel is closed, or on 4.3 the consumer
// cancelled, and the message delivered again.
const serverTimeout = 30 * time.Minute

func checkConsumerTimeout(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Handler == nil || !q.sound("handler", "delay", "backoff", "arguments") {
			continue
		}
		held, limit := q.Unacknowledged(), q.consumerTimeout()
		if held <= limit {
			continue
		}
		report(q.At("handler.timeout"), fmt.Sprintf("a delivery of queue %q may stay unacknowledged longer than the server's consumer timeout of %s",
			q.shown(), FormatDuration(limit)), "shorten the handler's timeout and the delay that hold waits, or set x-consumer-timeout (milliseconds) in arguments (RabbitMQ 4.3 takes it on quorum queues only)")
	}
}

func (q *Queue) consumerTimeout() time.Duration {
	ms, ok := q.Arguments["x-consumer-timeout"].(int64)
	if !ok || ms <= 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return serverTimeout
	}
	return time.Duration(ms) * time.Millisecond
}

// Unacknowledged is how long a delivery may stay unacknowledged, as far as the
// spec says: one call, and with hold the longest delay that backoff, exit_codes
// and statuses ask for. A handler may ask for more. 0 without a handler.
func (q *Queue) Unacknowledged() time.Duration {
	if q.Handler == nil {
		return 0
	}
	sum := float64(q.Handler.Timeout)
	if q.Delay != nil && q.Delay.Strategy == "hold" {
		sum += q.longestDelay()
	}
	return time.Duration(math.Min(sum, math.MaxInt64/2))
}

func (q *Queue) longestDelay() float64 {
	var longest float64
	for _, r := range q.Handler.ExitCodes {
		longest = max(longest, float64(r.Outcome.Delay))
	}
	for _, r := range q.Handler.Statuses {
		longest = max(longest, float64(r.Outcome.Delay))
	}
	if b := q.Backoff; b != nil {
		d := float64(b.Initial)
		switch {
		case b.Factor > 1 && q.MaxAttempts > 0:
			d *= math.Pow(b.Factor, float64(max(q.MaxAttempts-2, 0)))
		case b.Factor > 1:
			d = math.MaxInt64
		}
		if b.Max > 0 {
			d = math.Min(d, float64(b.Max))
		}
		longest = max(longest, d*(1+b.Jitter))
	}
	return longest
}
