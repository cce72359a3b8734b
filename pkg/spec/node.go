package spec

import (
	"strconv"
	"strings"
	"unicode"
)

type kind int

const (
	scalar kind = iota
	mapping
	sequence
)

// node is a YAML node with aliases and merge keys resolved. Every use of an
// alias is a copy of its own, so that nothing done to one reaches another.
type node struct {
	kind   kind
	pos    Pos
	parent *node
	label  string // for messages: the key, or key[2]
	broken bool   // a problem was reported here or below
	seen   map[string]bool

	// scalars
	text     string // as written, quotes removed
	value    string // after interpolation; what to use
	quoted   bool   // quotes, a block, or an explicit !!str
	class    class  // of a plain scalar; classString when quoted
	inserted bool   // value came from the environment or a file
	ready    bool   // interpolation is done

	entries []entry // mappings
	items   []*node // sequences
}

type entry struct {
	key    string
	class  class
	pos    Pos
	value  *node
	merged bool // came through a merge key
}

func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].value
		}
	}
	return nil
}

// spoil marks n and what holds it.
func (n *node) spoil() {
	for ; n != nil; n = n.parent {
		n.broken = true
	}
}

// missing remembers that the key is in n under a wrong name or not at all, and
// that this has been reported.
func (n *node) missing(key string) {
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[key] = true
}

// at finds the node of a JSON pointer, split into its parts.
func (n *node) at(path []string) *node {
	for _, part := range path {
		var next *node
		if n.kind == sequence {
			if i, err := strconv.Atoi(part); err == nil && i < len(n.items) {
				next = n.items[i]
			}
		} else {
			next = n.get(part)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// shown is the node as written, for messages: never an interpolated value,
// never a URL's password, and not longer than a line.
func (n *node) shown() string {
	switch {
	case n.kind == mapping:
		return "a mapping"
	case n.kind == sequence && len(n.items) == 0:
		return "an empty list"
	case n.kind == sequence:
		return "a list"
	case n.class == classNull && !n.quoted && !n.interpolated():
		return "nothing"
	case n.quoted || n.class == classString && !n.interpolated():
		return quoteShort(maskURL(n.text))
	}
	return short(maskURL(n.text))
}

// interpolated reports whether the text names a variable or a file.
func (n *node) interpolated() bool { return strings.Contains(n.text, "${") }

// sensitive reports whether the text, even as written, may be a secret.
func (n *node) sensitive() bool {
	for ; n != nil; n = n.parent {
		switch base, _, _ := strings.Cut(n.label, "["); base {
		case "secret", "env", "headers", "url", "management_url", "http":
			return true
		}
	}
	return false
}

const shownMax = 60

// short makes s fit into a message: one line, not too long.
func short(s string) string {
	s = cut(s)
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func cut(s string) string {
	if r := []rune(s); len(r) > shownMax {
		return string(r[:shownMax]) + "…"
	}
	return s
}

func quoteShort(s string) string { return strconv.Quote(cut(s)) }
