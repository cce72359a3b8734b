package spec

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// explainer turns what the schema library found into sentences with positions,
// one for each mistake.
type explainer struct {
	*parser
	root *node
	doc  view
	done map[*node]bool
}

func (e *explainer) explain(err error) {
	var ve *jsonschema.ValidationError
	if errors.As(err, &ve) {
		e.walk(ve)
	}
}

func (e *explainer) walk(ve *jsonschema.ValidationError) {
	switch keyword(ve) {
	case "anyOf":
		e.anyOf(ve)
		return
	case "oneOf":
		// The one oneOf is a handler's kind, which rule handler-kind explains.
		return
	}
	if len(ve.Causes) == 0 {
		e.leaf(ve)
		return
	}
	for _, cause := range ve.Causes {
		e.walk(cause)
	}
}

// anyOf follows the one alternative that has the right type; when there is not
// exactly one, the mistake is the value as a whole.
func (e *explainer) anyOf(ve *jsonschema.ValidationError) {
	var fits []*jsonschema.ValidationError
	n := e.root.at(pointer(ve.InstanceLocation))
	for _, cause := range ve.Causes {
		if !mismatch(cause, n, ve.InstanceLocation) {
			fits = append(fits, cause)
		}
	}
	if len(fits) == 1 {
		e.walk(fits[0])
		return
	}
	e.value(ve)
}

// mismatch reports whether an alternative failed because the value has another
// type.
func mismatch(ve *jsonschema.ValidationError, n *node, loc string) bool {
	for len(ve.Causes) == 1 && keyword(ve) != "anyOf" {
		ve = ve.Causes[0]
	}
	if ve.InstanceLocation != loc {
		return false
	}
	if k := keyword(ve); k != "anyOf" {
		return k == "type" || k == "enum" && n.kind != scalar
	}
	for _, cause := range ve.Causes {
		if !mismatch(cause, n, loc) {
			return false
		}
	}
	return true
}

func (e *explainer) leaf(ve *jsonschema.ValidationError) {
	switch {
	case strings.Contains(ve.KeywordLocation, "/propertyNames"):
		e.propertyName(ve)
	case keyword(ve) == "additionalProperties":
		e.unknownKeys(ve)
	case keyword(ve) == "required":
		e.missingKeys(ve)
	case ve.Message == "not allowed":
		e.misplaced(ve, last(pointer(ve.InstanceLocation)))
	case dependent(ve) != "":
		e.misplaced(ve, dependent(ve))
	default:
		e.value(ve)
	}
}

// value reports a value that is not what its key takes.
func (e *explainer) value(ve *jsonschema.ValidationError) {
	n := e.root.at(pointer(ve.InstanceLocation))
	if e.done[n] || n.broken && len(n.entries)+len(n.items) == 0 {
		return
	}
	e.done[n] = true
	saying, where := e.doc.saying(schemaPath(ve))
	path := strings.Join(schemaPath(ve), "/")
	fault := fault{want: saying, schema: where, duration: strings.Contains(strings.ToLower(path), "$defs/duration") ||
		strings.Contains(path, "$defs/delayDuration")}
	rule, message, hint := fault.describe(n)
	e.refuse(n, rule, message, hint)
}

func (e *explainer) unknownKeys(ve *jsonschema.ValidationError) {
	n := e.root.at(pointer(ve.InstanceLocation))
	path := schemaPath(ve)
	at := e.doc.at(path[:len(path)-1])
	allowed := at.keys()
	for _, en := range n.entries {
		if at.known(en.key) || n.parent == nil && strings.HasPrefix(en.key, "x-") {
			continue
		}
		en.value.spoil()
		open := absent(n, allowed)
		if near := nearest(en.key, open); near != "" {
			n.missing(near)
		}
		hint := suggestion(en.key, allowed)
		if n.label == "defaults" && slices.Contains(notDefaulted, en.key) {
			hint = "defaults cannot set " + strings.Join(notDefaulted, ", ")
		}
		if en.class != classString {
			continue // reported as a key that is not text
		}
		e.err(en.pos, "unknown-key", fmt.Sprintf("unknown key %s%s", quoteShort(en.key), inside(n)), hint)
	}
}

func absent(n *node, keys []string) []string {
	var out []string
	for _, k := range keys {
		if n.get(k) == nil {
			out = append(out, k)
		}
	}
	return out
}

func inside(n *node) string {
	if n.parent == nil {
		return ""
	}
	return " in " + n.label
}

func (e *explainer) missingKeys(ve *jsonschema.ValidationError) {
	n := e.root.at(pointer(ve.InstanceLocation))
	path := schemaPath(ve)
	list, _ := e.doc.at(path[:len(path)-1]).here["required"].([]any)
	for _, r := range list {
		key, _ := r.(string)
		if n.get(key) != nil || n.seen[key] || e.meant(n, key) {
			continue
		}
		n.missing(key)
		n.spoil()
		e.err(n.pos, "missing-key", fmt.Sprintf("%s needs the key %q", n.label, key), missingHint(n, key))
	}
}

// meant reports whether an unknown key of n was probably meant to be key.
func (e *explainer) meant(n *node, key string) bool {
	for _, en := range n.entries {
		if en.key != key && nearest(en.key, []string{key}) != "" {
			return true
		}
	}
	return false
}

func missingHint(n *node, key string) string {
	if n.parent == nil && key == "version" {
		return `write "version: 1" as the first line`
	}
	return ""
}

// misplaced reports a key that belongs to another strategy or handler kind.
func (e *explainer) misplaced(ve *jsonschema.ValidationError, key string) {
	path := pointer(ve.InstanceLocation)
	parent := e.root.at(path[:len(path)-1])
	if parent.kinds() > 1 || !e.strategyKnown(parent) {
		return // which is the mistake, and reported elsewhere
	}
	saying, _ := e.doc.saying(schemaPath(ve))
	for _, en := range parent.entries {
		if en.key == key {
			en.value.spoil()
			e.err(en.pos, "misplaced-key", fmt.Sprintf("key %q %s", en.key, saying), "remove the key")
		}
	}
}

// strategyKnown reports whether the strategy of a delay, if n is one, is a
// strategy.
func (e *explainer) strategyKnown(n *node) bool {
	s := n.get("strategy")
	return s == nil || slices.Contains(e.doc.at([]string{"$defs", "delayStrategy"}).enum(), s.value)
}

// dependent returns the key whose presence asks for what was not found.
func dependent(ve *jsonschema.ValidationError) string {
	_, rest, ok := strings.Cut(ve.KeywordLocation[strings.LastIndex(ve.KeywordLocation, "/$ref/")+1:], "/dependentSchemas/")
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(rest, "/")
	return key
}

func last(path []string) string { return path[len(path)-1] }

// kinds counts the handler kinds among the keys of n.
func (n *node) kinds() int { return 3 - len(absent(n, []string{"exec", "worker", "http"})) }

func (e *explainer) propertyName(ve *jsonschema.ValidationError) {
	path := pointer(ve.InstanceLocation)
	parent := e.root.at(path[:len(path)-1])
	saying, _ := e.doc.saying(schemaPath(ve))
	for _, en := range parent.entries {
		if en.key == last(path) && !e.done[en.value] {
			e.done[en.value] = true
			en.value.spoil()
			if en.class == classString || en.class == classInt {
				e.err(en.pos, "value", fmt.Sprintf("%s: %s %s", parent.label, quoteShort(en.key), saying), "")
			}
		}
	}
}

func keyword(ve *jsonschema.ValidationError) string {
	return ve.KeywordLocation[strings.LastIndexByte(ve.KeywordLocation, '/')+1:]
}

func schemaPath(ve *jsonschema.ValidationError) []string {
	_, fragment, _ := strings.Cut(ve.AbsoluteKeywordLocation, "#")
	return pointer(fragment)
}

// pointer splits a JSON pointer as the library writes it, percent-encoded.
func pointer(s string) []string {
	if s = strings.TrimPrefix(s, "/"); s == "" {
		return nil
	}
	parts := strings.Split(s, "/")
	for i, p := range parts {
		if u, err := url.PathUnescape(p); err == nil {
			p = u
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts
}
