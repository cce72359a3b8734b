package broker

import (
	"fmt"
	"strconv"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/topology"
)

// unfit refuses a queue that the server would take and then not treat as the spec
// means it.
func unfit(q topology.Queue, srv topology.Server) (Finding, bool) {
	if old, yes := tooOld(q, srv); yes {
		return old, yes
	}
	limit, given := q.Arguments[keyLimit].(int64)
	if consumed(q) && given && srv.DropsReturned(limit) {
		return dropsReturned(queueFinding(q), srv), true
	}
	return queueFinding(q), false
}

// consumed reports whether the spec gives q a handler.
func consumed(q topology.Queue) bool { return q.Unacknowledged > 0 }

func dropsReturned(f Finding, srv topology.Server) Finding {
	f.State = Refused
	f.Detail = fmt.Sprintf("x-delivery-limit -1 is no limit since RabbitMQ 4.0 only; this server is %s and drops a message at its first return", srv.Version)
	f.Hint = "leave the argument out, or write max_attempts and dead_letter"
	return f
}

// warnReturned is dropsReturned for a queue that rsctl does not consume: what
// returns its messages is somebody else.
func warnReturned(f Finding, q topology.Queue, srv topology.Server) Finding {
	limit, given := q.Arguments[keyLimit].(int64)
	if consumed(q) || len(q.DeadLetterOf) > 0 || !given || !srv.DropsReturned(limit) {
		return f
	}
	return warn(f, []string{dropsReturned(f, srv).Detail})
}

// trueLimit judges the delivery limit that an existing queue really has, given
// how the queue differs from q, where that is not what q says.
func trueLimit(f Finding, q topology.Queue, ds []difference, srv topology.Server) Finding {
	if q.Type != settle.Quorum || !consumed(q) {
		return f
	}
	d, differs := differenceOf(ds, keyLimit)
	if !differs && !q.External {
		return f // the rules have judged it
	}
	limit, route := limitOf(q, d, differs), routed(q, ds)
	if limit.Given && srv.DropsReturned(limit.Returns) {
		return dropsReturned(f, srv)
	}
	returns, limited := limit.On(srv.Major())
	if !limited || route && !differs {
		return f
	}
	end := "dropped, unless a policy gives the queue a dead-letter route"
	if route {
		end = "moved to its dead-letter exchange"
	}
	own := "its x-delivery-limit"
	if !limit.Given {
		own = "it has no x-delivery-limit, so the server's default of " + strconv.FormatInt(returns, 10)
	} else {
		own += " " + strconv.FormatInt(returns, 10)
	}
	return warn(f, []string{fmt.Sprintf("%s holds: a message that fails %d times is %s", own, returns+1, end)})
}

// limitOf is the limit that the existing queue has.
func limitOf(q topology.Queue, d difference, differs bool) settle.Limit {
	if !differs {
		n, given := q.Arguments[keyLimit].(int64)
		return settle.Limit{Given: given, Returns: n}
	}
	n, err := strconv.ParseInt(d.have, 10, 64)
	return settle.Limit{Given: err == nil, Returns: n}
}

// routed reports whether the existing queue has a dead-letter exchange.
func routed(q topology.Queue, ds []difference) bool {
	if d, differs := differenceOf(ds, keyDeadLetter); differs {
		return d.have != show(nil)
	}
	return q.Arguments[keyDeadLetter] != nil
}

func differenceOf(ds []difference, key string) (difference, bool) {
	for _, d := range ds {
		if d.key == key {
			return d, true
		}
	}
	return difference{}, false
}

// warnNative warns about an existing queue that does not delay its retries as the
// spec relies on.
func warnNative(f Finding, ds []difference) Finding {
	if d, differs := differenceOf(ds, "x-delayed-retry-type"); differs && d.want != show(nil) && !f.failed() {
		return warn(f, []string{d.String() + ": the server does not wait before a retry"})
	}
	return f
}
