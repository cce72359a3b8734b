package topology

import (
	"slices"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Compile returns what must exist for s on a server. The same spec and server
// give the same topology, byte for byte.
//
// Objects that several queues need are compiled once and name all of them. When
// two queues need one object with different settings, the first in the file
// decides; [Problems] reports it.
func Compile(s *spec.Spec, srv Server) *Topology {
	c := newCompiler(srv)
	c.spec(s)
	return &c.out
}

// Problems returns what is wrong with s as a topology: objects that two queues
// need with different settings. They are errors.
func Problems(s *spec.Spec) spec.Problems {
	c := newCompiler(Server{})
	c.spec(s)
	for i := range c.problems {
		c.problems[i].File = s.File
	}
	return c.problems
}

// A compiler collects objects. What the file declares comes first, whatever the
// order of the entries, so that a derived object never replaces it.
type compiler struct {
	srv       Server
	out       Topology
	inFile    map[string]bool        // exchanges of the file
	declared  map[string]*spec.Queue // queues of the file
	exchanges map[string]int         // index into out, by name
	queues    map[string]int
	bindings  map[string]int
	lists     map[list]map[string]bool // what union has put into each
	problems  spec.Problems
}

func newCompiler(srv Server) *compiler {
	return &compiler{
		srv: srv, exchanges: map[string]int{}, queues: map[string]int{},
		bindings: map[string]int{}, declared: map[string]*spec.Queue{}, inFile: map[string]bool{},
		lists: map[list]map[string]bool{},
	}
}

func (c *compiler) spec(s *spec.Spec) {
	for i := range s.Exchanges {
		c.addExchange(fileExchange(&s.Exchanges[i]))
		c.inFile[s.Exchanges[i].Name] = true
	}
	for i := range s.Queues {
		c.declared[s.Queues[i].Name] = &s.Queues[i]
	}
	for i := range s.Queues {
		c.queue(&s.Queues[i])
	}
	for i := range s.Queues {
		c.bind(&s.Queues[i])
	}
}

func fileExchange(x *spec.Exchange) Exchange {
	return Exchange{
		Name: x.Name, Type: x.Type, Durable: x.Durable, AutoDelete: x.AutoDelete,
		Internal: x.Internal, External: x.External, Arguments: normalize(x.Arguments),
		Origin: Origin{Role: RoleExchange, Pos: x.Pos},
	}
}

// queue adds q after the queues its messages are sent to, and the exchanges
// that q needs.
func (c *compiler) queue(q *spec.Queue) {
	f := delayNeeds(q)
	at := q.Pos
	if q.Delay != nil {
		at = q.At("delay")
	}
	for _, x := range f.exchanges {
		x.Origin.Queues, x.Origin.Pos = []string{q.Name}, at
		c.addExchange(x)
	}
	if q.DeadLetter != "" {
		c.deadLetter(q)
	}
	for _, w := range f.queues {
		w.Origin.Queues, w.Origin.Pos = []string{q.Name}, at
		if w.AcceptExisting {
			w = c.keepEverything(w)
		} else {
			w.WaitsFor = w.Origin.Queues
		}
		c.addDerived(w)
	}
	c.addQueue(workQueue(q, f.arguments))
	if q.DeadLetterExchange != nil {
		c.refer(*q.DeadLetterExchange, q, q.At("dead_letter_exchange"))
	}
	for _, b := range q.Bindings {
		c.refer(b.Exchange, q, b.Pos)
	}
	if q.RetryPublisher != nil {
		c.refer(q.RetryPublisher.Exchange, q, q.At("retry_publisher"))
	}
	c.out.Trips = append(c.out.Trips, trips(q)...)
	if copiesByDefault(q) {
		c.out.DefaultCopies = append(c.out.DefaultCopies, q.Name)
	}
}

// copiesByDefault reports whether a copy of a message of q can go to the
// default exchange.
func copiesByDefault(q *spec.Queue) bool {
	p := Policy(q)
	if p.Delay != nil && p.Delay.Mode == settle.ModeCopy && p.Delay.Route(1).Exchange == "" {
		return true
	}
	return copies(p) && p.RetryExchange == ""
}

// copies reports whether a queue has copies that do not wait on the broker: of
// retries under a cap, from the in-process timer, and dead letters.
func copies(p settle.Policy) bool {
	if p.Type == settle.Quorum {
		return p.DeadLetter != "" && (p.EndsSpent || p.Delay != nil && p.Delay.Mode == settle.ModeCopy)
	}
	timer := p.Delay == nil || p.Delay.Mode == settle.ModeTimer
	return p.Type == settle.Classic && (p.MaxAttempts > 0 || timer)
}

// workQueue is q itself with everything its keys set.
func workQueue(q *spec.Queue, delayArgs map[string]any) Queue {
	args := with(normalize(q.Arguments), map[string]any{"x-queue-type": string(q.Type)})
	args = with(args, delayArgs)
	if q.DeadLetterExchange != nil {
		args["x-dead-letter-exchange"] = *q.DeadLetterExchange
	}
	if q.DeadLetterRoutingKey != nil {
		args["x-dead-letter-routing-key"] = *q.DeadLetterRoutingKey
	}
	if q.Consumer.SingleActive {
		args["x-single-active-consumer"] = true
	}
	if q.Type == spec.Quorum && q.MaxAttempts > 0 && q.DeadLetter != "" {
		// The server counts returns, of which the first delivery is none.
		args["x-delivery-limit"] = int64(q.MaxAttempts) - 1
		args["x-dead-letter-exchange"] = ""
		args["x-dead-letter-routing-key"] = q.DeadLetter
	}
	return Queue{
		Name: q.Name, Type: settle.Type(q.Type), Durable: q.Durable || q.Type == spec.Quorum,
		Exclusive: q.Exclusive, AutoDelete: q.AutoDelete, External: q.External,
		RejectsOriginals: q.RetryOriginal != spec.AckOriginal && copies(Policy(q)),
		Unacknowledged:   q.Unacknowledged(),
		Holds:            q.Delay != nil && q.Delay.Strategy == "hold",
		Arguments:        args,
		Origin:           Origin{Role: RoleWork, Queues: []string{q.Name}, Pos: q.Pos},
	}
}

// deadLetter adds the queue that takes the spent messages of q.
func (c *compiler) deadLetter(q *spec.Queue) {
	c.addDerived(c.keepEverything(Queue{
		Name: q.DeadLetter, Type: settle.Type(q.Type), Durable: true,
		AcceptExisting: true, DeadLetterOf: []string{q.Name},
		Arguments: map[string]any{"x-queue-type": string(q.Type)},
		Origin:    Origin{Role: RoleDeadLetter, Queues: []string{q.Name}, Pos: q.At("dead_letter")},
	}))
}

// keepEverything takes the delivery limit from a quorum queue where the server
// has a default: since 4.3 the delivery count travels with a dead-lettered
// message, and a limited queue would drop it at the first look.
func (c *compiler) keepEverything(q Queue) Queue {
	if q.Type == settle.Quorum && c.srv.unlimitedDeliveries() {
		q.Arguments = with(q.Arguments, map[string]any{"x-delivery-limit": int64(-1)})
	}
	return q
}

// bind adds the bindings of q: its own, those its retry publisher needs, and
// those of its delay.
func (c *compiler) bind(q *spec.Queue) {
	for _, b := range q.Bindings {
		c.addBinding(Binding{
			Source: b.Exchange, Destination: q.Name, RoutingKey: b.RoutingKey,
			Arguments: normalize(b.Arguments),
			Origin:    Origin{Role: RoleWork, Queues: []string{q.Name}, Pos: b.Pos},
		})
	}
	c.bindRetryPublisher(q)
	at := q.At("delay")
	for _, b := range delayNeeds(q).bindings {
		b.Origin.Queues, b.Origin.Pos = []string{q.Name}, at
		c.addBinding(b)
	}
}

// bindRetryPublisher lets copies that are published with the name of their
// target queue arrive. A headers exchange does not look at the routing key, so
// there the bindings are the user's.
func (c *compiler) bindRetryPublisher(q *spec.Queue) {
	if q.RetryPublisher == nil || q.RetryPublisher.Exchange == "" {
		return
	}
	source := q.RetryPublisher.Exchange
	if i, ok := c.exchanges[source]; ok && c.out.Exchanges[i].Type == "headers" {
		return
	}
	for _, to := range slices.Compact([]string{q.Name, q.DeadLetter}) {
		if to == "" {
			continue
		}
		c.addBinding(Binding{
			Source: source, Destination: to, RoutingKey: to,
			Origin: Origin{Role: RoleWork, Queues: []string{q.Name}, Pos: q.At("retry_publisher")},
		})
	}
}
