package spec

import (
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Options is everything that parsing may know of the outside world.
type Options struct {
	// File is how messages name the spec.
	File string
	// Dir is the absolute directory that relative paths resolve against.
	Dir string
	// LookupEnv answers for ${VAR}; nil stands for an empty environment.
	LookupEnv func(string) (string, bool)
	// ReadFile answers for ${file:PATH}; nil refuses every such value.
	ReadFile func(string) ([]byte, error)
}

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

// parser carries the problems of one Parse through its stages: bytes to nodes,
// nodes against the schema, nodes to a Spec, Spec against the rules.
type parser struct {
	options  Options
	problems Problems
	seen     map[Problem]bool
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

// err reports an error once, however often its text is reached through aliases.
func (p *parser) err(at Pos, rule, message, hint string) {
	p.add(Problem{Pos: at, Severity: Error, Rule: rule, Message: message, Hint: hint})
}

func (p *parser) add(problem Problem) {
	problem.File = p.options.File
	if p.seen[problem] {
		return
	}
	p.seen[problem] = true
	p.problems = append(p.problems, problem)
}

// refuse reports an error about a node and marks it, so that later stages do
// not report what follows from the mistake.
func (p *parser) refuse(n *node, rule, message, hint string) {
	n.spoil()
	p.err(n.pos, rule, message, hint)
}

// Queue returns the queue called name, or nil.
func (s *Spec) Queue(name string) *Queue {
	i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Queues[i]
}

// compiled is the schema, compiled at its first use: it takes longer than
// parsing a small spec does, and version or completion do not need it.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema() })
