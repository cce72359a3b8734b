package spec

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

// parser carries the problems of one Parse through its stages: bytes to nodes,
// nodes against the schema, nodes to a Spec, Spec against the rules.
type parser struct {
	options  Options
	problems Problems
	seen     map[Problem]bool
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
