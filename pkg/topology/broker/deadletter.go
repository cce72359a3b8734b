package broker

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/topology"
)

// lookDeadLetter takes an existing dead-letter queue as it is, and warns where
// its own settings would lose the messages that it keeps.
func (a *attempt) lookDeadLetter(ctx context.Context, q topology.Queue) (Finding, error) {
	f := queueFinding(q)
	f.State = OK
	ds, err := a.compareQueue(ctx, q)
	if err == nil && typeOf(ds, string(q.Type)) == string(settle.Quorum) {
		// Read the delivery limit as a quorum queue would have it.
		ds, err = a.compareQueue(ctx, a.unlimited(q))
	}
	if err != nil {
		return a.unlike(f, err)
	}
	return warn(f, a.losses(ds)), nil
}

// typeOf is the existing queue's type, given the differences from a wanted one.
func typeOf(ds []difference, want string) string {
	for _, d := range ds {
		if d.key == keyType {
			return strings.Trim(d.have, `"`)
		}
	}
	return want
}

// unlimited is q as a quorum queue that keeps a message however often it is
// returned; on 3.x that is one without a limit.
func (a *attempt) unlimited(q topology.Queue) topology.Queue {
	q.Type = settle.Quorum
	q.Arguments = map[string]any{keyType: string(settle.Quorum)}
	if a.srv.AtLeast(4, 0) {
		q.Arguments[keyLimit] = int64(-1)
	}
	return q
}

// losses says in words what a dead-letter queue's differences from a plain
// durable one do to messages.
func (a *attempt) losses(ds []difference) []string {
	var out []string
	for _, d := range ds {
		switch d.key {
		case "durable":
			out = append(out, "it is not durable: a restart of the broker deletes it")
		case "auto_delete":
			out = append(out, "it is auto-delete: it goes with its last consumer, messages included")
		case "x-message-ttl", "x-max-length", "x-max-length-bytes", "x-expires":
			out = append(out, fmt.Sprintf("%s %s drops dead letters", d.key, d.have))
		case keyLimit:
			out = append(out, a.limitLoss(d.have)...)
		}
	}
	return out
}

// limitLoss is what the delivery limit of a quorum dead-letter queue does: since
// 4.3 the count comes along from the queue that gave the message up, so that the
// first look at it (get and requeue) is over the limit. On 4.0 to 4.2 the queue
// counts afresh; on 3.x there is no default limit, and -1 means "drop at once".
func (a *attempt) limitLoss(have string) []string {
	limit := "x-delivery-limit " + have
	if have == "none" {
		limit = "the server's default delivery limit of 20"
	}
	switch {
	case a.srv.Native():
		return []string{limit + " counts on from the work queue: a message can be dropped the first time somebody looks at it and requeues it; declare the queue with x-delivery-limit: -1"}
	case a.srv.AtLeast(4, 0):
		return []string{limit + " drops a message that is requeued more often; declare the queue with x-delivery-limit: -1"}
	case have == "-1":
		return []string{limit + " means on RabbitMQ 3.x that a message is dropped when it is requeued"}
	case have != "none":
		return []string{limit + " drops a message that is requeued more often"}
	}
	return nil
}

// warnDeadLetter warns about a queue that the file declares and that takes the
// spent messages of others, when its limit would lose them.
func (a *attempt) warnDeadLetter(f Finding, q topology.Queue) Finding {
	if len(q.DeadLetterOf) == 0 || q.AcceptExisting || q.Type != settle.Quorum {
		return f
	}
	limit, set := q.Arguments[keyLimit]
	if set && limit == int64(-1) && a.srv.AtLeast(4, 0) {
		return f
	}
	return warn(f, a.limitLoss(show(limit)))
}
