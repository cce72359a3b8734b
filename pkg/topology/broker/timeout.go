package broker

import (
	"fmt"
	"math"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// The server's consumer timeout is a setting of the node. Neither AMQP nor the
// management API shows it, but a queue's argument or policy replaces it
// (RabbitMQ 3.12 and later).
const (
	argumentTimeout = "x-consumer-timeout"
	policyTimeout   = "consumer-timeout"
)

// timeouts compares how long deliveries stay unacknowledged with what can be
// seen of the consumer timeout. What cannot be seen matters where delays are held.
func (c *checker) timeouts(list []topology.Queue) []Finding {
	var out []Finding
	for _, q := range list {
		if q.Unacknowledged <= 0 || c.absent[kindQueue+" "+q.Name] {
			continue
		}
		f := Finding{Kind: kindTimeout, Name: q.Name, Origin: q.Origin}
		limit, from, seen := c.timeoutOf(q)
		switch {
		case seen && limit < q.Unacknowledged:
			f.State = Warned
			f.Detail = fmt.Sprintf("%s is %s: a delivery that stays unacknowledged for %s, as the spec allows, is taken away and delivered again",
				from, spec.FormatDuration(limit), spec.FormatDuration(q.Unacknowledged))
			f.Hint = "raise it, or shorten the handler's timeout and the delay that hold waits"
		case seen && q.Holds:
			f.State = OK
		case q.Holds:
			f.State = NotVerified
			f.Detail = fmt.Sprintf("the node's consumer_timeout (30m unless configured) is not visible; the spec lets a delivery stay unacknowledged for %s, and a handler may ask for more",
				spec.FormatDuration(q.Unacknowledged))
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// timeoutOf returns the timeout of the queue's own, and where it is set; of an
// argument and a policy, the smaller. Servers before 3.12 know neither.
func (c *checker) timeoutOf(q topology.Queue) (limit time.Duration, from string, seen bool) {
	if !c.srv.AtLeast(3, 12) {
		return 0, "", false
	}
	limit, seen = milliseconds(q.Arguments[argumentTimeout])
	from = argumentTimeout
	if c.view == nil {
		return limit, from, seen
	}
	if own, ok := milliseconds(c.view.queues[q.Name].Arguments[argumentTimeout]); ok && !seen {
		limit, seen = own, true // of an external queue
	}
	if policy, ok := milliseconds(c.view.policyOf(q.Name)[policyTimeout]); ok && (!seen || policy < limit) {
		return policy, "the policy's " + policyTimeout, true
	}
	return limit, from, seen
}

func milliseconds(v any) (time.Duration, bool) {
	n, ok := plain(v).(int64)
	if !ok || n <= 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}
