package broker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/topology"
)

// policyOf is the effective policy of a queue: the operator's values on top of
// the user's, the smaller number where both set one.
func (v *view) policyOf(name string) map[string]any {
	q := v.queues[name]
	out := maps.Clone(v.policies[q.Policy].Definition)
	for k, value := range v.operator[q.OperatorPolicy].Definition {
		if out == nil {
			out = map[string]any{}
		}
		mine, number := out[k].(float64)
		theirs, both := value.(float64)
		if !number || !both || theirs < mine {
			out[k] = value
		}
	}
	return out
}

// policyLosses says in words what a policy does to the messages of q that the
// spec does not know of.
func policyLosses(q topology.Queue, policy map[string]any, srv topology.Server) []string {
	if len(policy) == 0 {
		return nil
	}
	var out []string
	if e, ok := policy["dead-letter-exchange"]; ok && q.RejectsOriginals && q.Arguments["x-dead-letter-exchange"] == nil {
		out = append(out, fmt.Sprintf("a policy sets dead-letter-exchange %q: every retried original also goes there; retry_original: ack avoids it", e))
	}
	if text, ok := limitPolicy(q, policy, srv); ok {
		out = append(out, text)
	}
	if q.Origin.Role == topology.RoleWork && len(q.DeadLetterOf) == 0 {
		return out
	}
	for _, key := range slices.Sorted(maps.Keys(policy)) {
		switch key {
		case "message-ttl", "max-length", "max-length-bytes", "expires":
			out = append(out, fmt.Sprintf("a policy sets %s %v: %s", key, policy[key], policyEffect(q, key)))
		}
	}
	return out
}

// limitPolicy is the smaller delivery limit of a policy; the server takes the
// smaller of policy and argument.
func limitPolicy(q topology.Queue, policy map[string]any, srv topology.Server) (string, bool) {
	limit, ok := policy["delivery-limit"].(float64)
	if !ok || q.Type != settle.Quorum {
		return "", false
	}
	want, set := q.Arguments[keyLimit].(int64)
	switch {
	case srv.DropsReturned(int64(limit)):
		return fmt.Sprintf("a policy sets delivery-limit %d: RabbitMQ 3.x drops a message at its first return", int64(limit)), true
	case set && want >= 0 && limit >= 0 && int64(limit) < want:
		return fmt.Sprintf("a policy sets delivery-limit %d: messages are spent after %d attempts instead of %d", int64(limit), int64(limit)+1, want+1), true
	case q.Origin.Role != topology.RoleWork && limit >= 0:
		return fmt.Sprintf("a policy sets delivery-limit %d: messages that are returned more often are dropped", int64(limit)), true
	case limit >= 0 && (!set || want < 0):
		return fmt.Sprintf("a policy sets delivery-limit %d: messages are given up after %d attempts", int64(limit), int64(limit)+1), true
	}
	return "", false
}

func policyEffect(q topology.Queue, key string) string {
	waiting := q.Origin.Role == topology.RoleWaiting || q.Origin.Role == topology.RoleLadder
	switch {
	case waiting && key == "message-ttl":
		return "delayed retries come back early"
	case waiting:
		return "delayed retries can be lost"
	}
	return "dead letters can be lost"
}
