package spec

import (
	"slices"
)

// Parse turns the bytes of a queues.yaml into a Spec with defaults applied.
//
// All problems of the file come back in one run, sorted by position. Warnings
// leave the Spec usable; with an error among the problems the Spec is nil.
// Values that came from the environment or from a file are in no problem.
//
// What two queues need of one object with different settings is found by
// topology.Problems, which New of package service asks, too.
//
// Parse does no input or output of its own and never panics on any input.
func Parse(data []byte, o Options) (*Spec, Problems) {
	p := &parser{options: o, seen: map[Problem]bool{}}
	s := p.parse(data)
	p.problems.sort()
	if p.problems.HasErrors() {
		return nil, p.problems
	}
	return s, p.problems
}

func (p *parser) parse(data []byte) *Spec {
	root, ok := p.read(data)
	if !ok {
		return nil
	}
	if !p.hasQueues(root) && len(root.entries) == 0 {
		return nil
	}
	p.validate(root)
	d := &decoder{parser: p, root: root}
	s := d.spec()
	p.check(s)
	return s
}

// hasQueues reports a spec that lists no queue at all, which must never look
// like a spec that says to have none.
func (p *parser) hasQueues(root *node) bool {
	where := root
	switch q := root.get("queues"); {
	case root.class != classNull && root.kind != mapping:
		return true // the schema says what it must be
	case q == nil && slices.ContainsFunc(root.entries, func(e entry) bool { return nearest(e.key, []string{"queues"}) != "" }):
		return true // a misspelt key is the problem
	case q == nil:
	case q.kind == scalar && q.class == classNull && !q.quoted, q.kind == sequence && len(q.items) == 0:
		where = q
	default:
		return true
	}
	root.missing("queues")
	p.refuse(where, "no-queues", "no queues", "write at least one: queues: [{name: orders, type: quorum}]")
	return false
}
