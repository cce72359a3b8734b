package spec

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	maxDepth = 100
	// aliasBudget is how many nodes aliases may add beside ten for each node
	// that is written, which is far more than shared defaults need.
	aliasBudget = 50_000
)

// resolver copies a yaml.Node tree, following aliases and merge keys.
type resolver struct {
	*parser
	anchors map[*yaml.Node]bool // being followed: meeting one again is a cycle
	written int
	copied  int
	aliases int // depth of aliases being followed
	depth   int
	stopped bool
}

func at(y *yaml.Node) Pos { return Pos{y.Line, y.Column} }

// stop reports what makes the rest of the file not worth reading.
func (r *resolver) stop(y *yaml.Node, message, hint string) {
	if !r.stopped {
		r.err(at(y), "yaml-alias", message, hint)
	}
	r.stopped = true
}

func (r *resolver) resolve(y *yaml.Node, parent *node, label string) *node {
	n := &node{pos: at(y), parent: parent, label: label}
	r.depth++
	defer func() { r.depth-- }()
	switch r.count(); {
	case r.depth > maxDepth:
		r.stop(y, fmt.Sprintf("nested more than %d levels deep", maxDepth), "")
	case r.copied > aliasBudget+10*r.written:
		r.stop(y, "aliases make the file too large", "write the values out, or use defaults")
	}
	if r.stopped {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.alias(y, parent, label)
	case yaml.MappingNode:
		n.kind = mapping
		r.mapping(y, n)
	case yaml.SequenceNode:
		n.kind = sequence
		for i, item := range y.Content {
			n.items = append(n.items, r.resolve(item, n, fmt.Sprintf("%s[%d]", label, i+1)))
		}
	default:
		r.scalar(y, n)
	}
	r.checkTag(y, n)
	return n
}

func (r *resolver) count() {
	if r.aliases > 0 {
		r.copied++
	} else {
		r.written++
	}
}

func (r *resolver) alias(y *yaml.Node, parent *node, label string) *node {
	if r.anchors[y.Alias] {
		r.stop(y, fmt.Sprintf("the alias *%s is inside what it stands for", y.Value), "")
		return &node{pos: at(y), parent: parent, label: label}
	}
	r.anchors[y.Alias] = true
	r.aliases++
	defer func() { delete(r.anchors, y.Alias); r.aliases-- }()
	return r.resolve(y.Alias, parent, label)
}

func (r *resolver) scalar(y *yaml.Node, n *node) {
	n.text = y.Value
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	n.quoted = y.Style&quotes != 0 || y.Style&yaml.TaggedStyle != 0 && y.Tag == "!!str"
	if !n.quoted {
		n.class = classify(y.Value)
	}
}

func (r *resolver) checkTag(y *yaml.Node, n *node) {
	if y.Style&yaml.TaggedStyle == 0 {
		return
	}
	switch y.Tag {
	case "!!str", "!!map", "!!seq":
	default:
		r.refuse(n, "yaml-tag", fmt.Sprintf("the tag %s is not supported", short(y.Tag)), "remove the tag")
	}
}

// mapping fills n with the pairs of y: its own first, then what merge keys
// bring and y does not set itself.
func (r *resolver) mapping(y *yaml.Node, n *node) {
	lines := map[string]int{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		key, c, ok := r.key(k)
		if !ok {
			n.spoil()
			continue
		}
		if first, dup := lines[key]; dup {
			n.spoil()
			r.err(at(k), "yaml-duplicate", fmt.Sprintf("key %s is written twice, at line %d and at line %d",
				quoteShort(key), first, k.Line), "keep one of them")
			continue
		}
		lines[key] = k.Line
		if key == "<<" && isMerge(k) {
			merges = append(merges, v)
			continue
		}
		n.entries = append(n.entries, entry{key: key, class: c, pos: at(k), value: r.resolve(v, n, n.childLabel(key))})
	}
	for _, m := range merges {
		r.merge(m, n)
	}
}

// childLabel names a value for messages. Keys that the user invents are shown
// with the key that holds them.
func (n *node) childLabel(key string) string {
	switch n.label {
	case "arguments", "env", "headers", "statuses", "exit_codes":
		return n.label + "." + short(key)
	}
	return short(key)
}

func isMerge(k *yaml.Node) bool {
	return k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0
}

// key returns the text of a mapping key. Keys are never interpolated.
func (r *resolver) key(k *yaml.Node) (string, class, bool) {
	for k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		r.err(at(k), "yaml-key", "a key must be text, not a list or a mapping", "")
		return "", 0, false
	}
	if strings.Contains(k.Value, "${") {
		r.err(at(k), "interpolation", fmt.Sprintf("the key %s holds ${…}, which works in values only", quoteShort(k.Value)), "")
		return "", 0, false
	}
	c := classString
	if k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 && k.Tag != "!!merge" {
		c = classify(k.Value)
	}
	return k.Value, c, true
}

// merge adds what n does not have yet. Of a list, the earlier mapping wins.
func (r *resolver) merge(y *yaml.Node, n *node) {
	src := r.resolve(y, n, "<<")
	switch {
	case r.stopped:
	case src.kind == sequence:
		for _, item := range src.items {
			r.mergeItem(item, n)
		}
	default:
		r.mergeItem(src, n)
	}
}

func (r *resolver) mergeItem(src, n *node) {
	if src.kind == mapping {
		n.adopt(src)
		return
	}
	r.refuse(src, "yaml-merge", "<< takes a mapping or a list of mappings, got "+src.shown(), "name an anchor: <<: *defaults")
}

func (n *node) adopt(src *node) {
	for _, e := range src.entries {
		if n.get(e.key) != nil {
			continue
		}
		e.value.parent = n
		e.merged = true
		n.entries = append(n.entries, e)
	}
	if src.broken {
		n.spoil()
	}
}
