// Package topology compiles a spec to what must exist on a broker, and to the
// policy that settles its deliveries.
//
// Everything here is pure; package topology/broker does the declaring and
// checking. A delay strategy is one file delay_<name>.go and one line in the
// registry in delay.go.
package topology

import (
	"slices"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Topology is what must exist, each list in the order of declaration:
// exchanges first, then queues, then bindings. A queue comes after the places
// its messages are sent to, so that an interrupted run never leaves a queue
// whose dead letters have nowhere to go.
type Topology struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
	// DefaultCopies are the queues whose copies the runtime publishes to the
	// default exchange, for which it needs write permission on amq.default.
	DefaultCopies []string
	// Trips are the ways of copies that must lead somewhere on the broker.
	Trips []Trip
}

// Role says why an object is there.
type Role string

// The roles an object can have. An object that the file declares keeps its role
// although other queues use it, too.
const (
	RoleWork       Role = "queue"
	RoleExchange   Role = "exchange"
	RoleDeadLetter Role = "dead-letter queue"
	RoleWaiting    Role = "waiting queue"
	RoleDelay      Role = "delayed exchange"
	RoleLadder     Role = "delay ladder"
)

// Origin says where in the spec the need for an object comes from.
type Origin struct {
	Role Role
	// Queues are the queues of the spec that need the object, in the order of
	// the file; empty for an exchange that no queue refers to.
	Queues []string
	Pos    spec.Pos
}

// Exchange is an exchange to declare, or to find when External. An exchange
// that the spec only refers to is External and has no Type.
type Exchange struct {
	Name, Type                    string
	Durable, AutoDelete, Internal bool
	External                      bool
	Arguments                     map[string]any // integers are int64
	Origin                        Origin
}

// Queue is a queue to declare, or to find when External. Arguments always hold
// x-queue-type; those of an external queue are what the spec relies on.
type Queue struct {
	Name                           string
	Type                           settle.Type
	Durable, Exclusive, AutoDelete bool
	External                       bool
	// AcceptExisting is set for a dead-letter queue that the spec only names,
	// and for the last place of the ladder: one that exists is taken as it is,
	// with a warning where its arguments would lose messages.
	AcceptExisting bool
	// DeadLetterOf are the queues of the spec whose spent messages end here.
	DeadLetterOf []string
	// WaitsFor are the queues of the spec whose delayed copies wait here.
	WaitsFor []string
	// RejectsOriginals is set for a classic queue whose retried originals end by
	// a reject: with a dead-letter route, even one from a policy, each of them
	// also goes there.
	RejectsOriginals bool
	// Unacknowledged is how long the spec lets a delivery stay unacknowledged, in
	// a handler and held by its delay. Beyond the server's consumer timeout the
	// delivery is taken away. 0: not consumed.
	Unacknowledged time.Duration
	// Holds is set when delayed retries stay unacknowledged (hold).
	Holds     bool
	Arguments map[string]any // integers are int64
	Origin    Origin
}

// Binding binds a queue, or another exchange when ToExchange, to an exchange.
type Binding struct {
	Source, Destination, RoutingKey string
	ToExchange                      bool
	Arguments                       map[string]any
	Origin                          Origin
}

// Server is what a declaration may depend on.
type Server struct {
	// Version is "4.3.6"; empty when not known, which compiles as the newest.
	Version string
}

// For returns the part of t that the subscriptions to the named queues need, in t's
// order: the queues, their dead-letter queues and waiting queues, and what connects
// them.
func (t *Topology) For(queues ...string) *Topology {
	named := make(map[string]bool, len(queues))
	for _, q := range queues {
		named[q] = true
	}
	needs := func(o Origin) bool {
		return slices.ContainsFunc(o.Queues, func(q string) bool { return named[q] })
	}
	part := &Topology{}
	for _, x := range t.Exchanges {
		if needs(x.Origin) {
			part.Exchanges = append(part.Exchanges, x)
		}
	}
	for _, q := range t.Queues {
		if needs(q.Origin) {
			part.Queues = append(part.Queues, q)
		}
	}
	for _, b := range t.Bindings {
		if needs(b.Origin) {
			part.Bindings = append(part.Bindings, b)
		}
	}
	for _, q := range t.DefaultCopies {
		if named[q] {
			part.DefaultCopies = append(part.DefaultCopies, q)
		}
	}
	for _, trip := range t.Trips {
		if named[trip.Queue] {
			part.Trips = append(part.Trips, trip)
		}
	}
	return part
}

// Trip is one way that copies of a queue go on the broker, and where each of them
// must arrive.
type Trip struct {
	Queue string // of the spec; its copies take this way
	What  string // "delayed retries", "retries", "dead letters"
	To    string // the queue where they must arrive
	// Exchange and Key are what a copy is published with; Expires says that it
	// has an expiration of its own, Delayed that the exchange has to hold it back.
	Exchange, Key    string
	Expires, Delayed bool
	Pos              spec.Pos
}
