package spec

import "fmt"

// RabbitMQ lets only the connection that has declared an exclusive queue use it
// (405 RESOURCE_LOCKED for any other), so run has to declare what it consumes.
func checkExclusiveDeclare(s *Spec, report report) {
	for q := range s.ofType(Classic) {
		if !q.Exclusive || !q.sound("exclusive", "external") {
			continue
		}
		switch {
		case q.External:
			report(q.At("external"), fmt.Sprintf("queue %q is exclusive and external: only the connection that declared it can consume it", q.shown()),
				"remove exclusive, or let rsctl declare the queue: declare_topology: true without external")
		case q.Handler == nil:
			report(q.At("exclusive"), fmt.Sprintf("queue %q is exclusive and has no handler: it would be gone with the connection that declares it", q.shown()),
				"remove exclusive, or give the queue a handler")
		case !s.DeclareTopology && !s.badDeclare:
			report(q.At("exclusive"), fmt.Sprintf("exclusive queue %q needs declare_topology: true: only the connection that declared it can consume it", q.shown()),
				"add declare_topology: true at the top, or remove exclusive")
		}
	}
}
