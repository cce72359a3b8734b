package topology

import "slices"

// An exclusive queue belongs to the connection that declares it, and goes with
// it. Only that connection may use it, so the one that consumes has to declare.

// Shared returns t without its exclusive queues and what is bound to them.
func (t *Topology) Shared() *Topology {
	shared, own := *t, map[string]bool{}
	for _, q := range t.Queues {
		own[q.Name] = q.Exclusive
	}
	shared.Queues = slices.DeleteFunc(slices.Clone(t.Queues), func(q Queue) bool { return q.Exclusive })
	shared.Bindings = slices.DeleteFunc(slices.Clone(t.Bindings), func(b Binding) bool { return !b.ToExchange && own[b.Destination] })
	shared.Trips = slices.DeleteFunc(slices.Clone(t.Trips), func(trip Trip) bool { return own[trip.To] })
	return &shared
}

// Own returns an exclusive queue of t and its bindings, for the connection that
// consumes it. It is empty for any other queue.
func (t *Topology) Own(queue string) *Topology {
	own := &Topology{}
	for _, q := range t.Queues {
		if q.Exclusive && q.Name == queue {
			own.Queues = append(own.Queues, q)
		}
	}
	for _, b := range t.Bindings {
		if !b.ToExchange && b.Destination == queue && len(own.Queues) > 0 {
			own.Bindings = append(own.Bindings, b)
		}
	}
	return own
}
