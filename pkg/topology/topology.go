// Package topology compiles a spec to what must exist on a broker, and to the
// policy that settles its deliveries.
//
// Everything here is pure; package topology/broker does the declaring and
// checking.
package topology

import (
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Topology is what must exist, each list in the order of declaration:
// exchanges first, then queues, then bindings.
type Topology struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
}

// Role says why an object is there.
type Role string

// The roles an object can have.
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
	Role   Role
	Queues []string // the queues of the spec that need the object; empty for a plain exchange
	Pos    spec.Pos
}

// Exchange is an exchange to declare, or to find when External.
type Exchange struct {
	Name, Type                    string
	Durable, AutoDelete, Internal bool
	External                      bool
	Arguments                     map[string]any // integers are int64
	Origin                        Origin
}

// Queue is a queue to declare, or to find when External. Arguments always hold
// x-queue-type for a queue that is declared.
type Queue struct {
	Name                           string
	Type                           settle.Type
	Durable, Exclusive, AutoDelete bool
	External                       bool
	// AcceptExisting is set for a dead-letter queue that the spec only names:
	// one that exists is taken as it is, with a warning where its arguments
	// would lose messages.
	AcceptExisting bool
	Arguments      map[string]any
	Origin         Origin
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

// Compile returns what must exist for s on a server. The same spec and server
// give the same topology, byte for byte.
func Compile(s *spec.Spec, srv Server) *Topology { panic("TODO helper") }

// For returns the part of t that the subscription to queue needs: the queue,
// its dead-letter queue, its waiting places, and what connects them.
func (t *Topology) For(queue string) *Topology { panic("TODO helper") }

// Policy compiles what settles the deliveries of q.
func Policy(q *spec.Queue) settle.Policy { panic("TODO helper") }
