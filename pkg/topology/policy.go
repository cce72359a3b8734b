package topology

import (
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Policy compiles what settles the deliveries of q.
func Policy(q *spec.Queue) settle.Policy {
	p := settle.Policy{
		Queue:       q.Name,
		Type:        settle.Type(q.Type),
		MaxAttempts: q.MaxAttempts,
		DeadLetter:  q.DeadLetter,
		EndsSpent:   q.Type == spec.Quorum && q.DeadLetterBy == spec.DeadLetterByRsctl,
		OwnRoute:    q.DeadLetterExchange != nil,
		MaxBody:     q.MaxBody,
		AckOriginal: q.RetryOriginal == spec.AckOriginal,
		Delay:       delayPolicy(q),
	}
	p.Limit.Returns, p.Limit.Given = q.DeliveryLimit()
	if q.RetryPublisher != nil {
		p.RetryExchange = q.RetryPublisher.Exchange
	}
	if b := q.Backoff; b != nil {
		p.Backoff = &settle.Backoff{Initial: b.Initial, Factor: b.Factor, Max: b.Max, Jitter: b.Jitter}
	}
	return p
}
