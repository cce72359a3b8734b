package topology

import (
	"maps"
	"slices"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A strategy says where a delayed retry of a queue waits. Both methods are pure,
// and they agree with each other: a copy that route sends off comes back to the
// queue through what needs compiles, no sooner than its delay.
type strategy interface {
	// needs returns what must exist for q beside the queue itself.
	needs(q *spec.Queue) fragment
	// delay returns how the deliveries of q wait. Its Strategy is filled in by
	// the caller.
	delay(q *spec.Queue) settle.Delay
}

// A fragment is what one strategy adds to a topology. Origins need only a Role;
// the rest is filled in by the compiler.
type fragment struct {
	exchanges []Exchange
	queues    []Queue
	bindings  []Binding
	arguments map[string]any // of the queue itself
}

// strategies is the registry, by the name that a spec uses.
var strategies = map[string]strategy{
	"timer":      timer{},
	"hold":       hold{},
	"dlx_ttl":    dlxTTL{},
	"plugin_dme": pluginDME{},
	"levels":     levels{},
	"native":     native{},
}

// Strategies returns the names of the delay strategies, sorted.
func Strategies() []string { return slices.Sorted(maps.Keys(strategies)) }

// delayNeeds is what the delay of q adds; nothing when it has none.
func delayNeeds(q *spec.Queue) fragment {
	if q.Delay == nil {
		return fragment{}
	}
	s, ok := strategies[q.Delay.Strategy]
	if !ok {
		return fragment{}
	}
	return s.needs(q)
}

// WaitingQueues returns the queues in which delayed copies of q wait on the
// broker; the ladder is shared with other queues. A delayed exchange, and a queue
// whose server waits in it, show nothing.
func WaitingQueues(q *spec.Queue) []string {
	var names []string
	for _, w := range delayNeeds(q).queues {
		if _, leads := w.Arguments["x-dead-letter-exchange"]; leads {
			names = append(names, w.Name)
		}
	}
	return names
}

// delayPolicy is how the deliveries of q wait; nil when it declares no delay.
func delayPolicy(q *spec.Queue) *settle.Delay {
	if q.Delay == nil {
		return nil
	}
	s, ok := strategies[q.Delay.Strategy]
	if !ok {
		return nil
	}
	d := s.delay(q)
	d.Strategy = q.Delay.Strategy
	return &d
}

// ceil rounds d up to a multiple of unit: the broker counts in whole
// milliseconds, and a retry must never come early.
func ceil(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return d - rest + unit
	}
	return d
}
