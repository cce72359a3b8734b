package spec

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/rsctl/rsctl/schema"
)

// view is one place in the schema's own JSON. The zero view is a place that
// the schema says nothing about.
type view struct {
	root map[string]any
	here map[string]any
}

var parsedSchema = sync.OnceValue(func() map[string]any {
	var m map[string]any
	if err := json.Unmarshal(schema.Queues, &m); err != nil {
		return nil
	}
	return m
})

func document() view {
	root := parsedSchema()
	return view{root, root}
}

// at resolves a JSON pointer, split into its parts. Parts that do not exist
// give the zero view.
func (v view) at(path []string) view {
	var here any = v.root
	for _, part := range path {
		switch h := here.(type) {
		case map[string]any:
			here = h[part]
		case []any:
			i, ok := index(part, len(h))
			if !ok {
				return view{root: v.root}
			}
			here = h[i]
		default:
			return view{root: v.root}
		}
	}
	m, _ := here.(map[string]any)
	return view{v.root, m}
}

func (v view) deref() view {
	ref, ok := v.here["$ref"].(string)
	if !ok {
		return v
	}
	return v.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")).deref()
}

// branches are v and, for an anyOf, its alternatives.
func (v view) branches() []view {
	v = v.deref()
	out := []view{v}
	list, _ := v.here["anyOf"].([]any)
	for _, b := range list {
		m, _ := b.(map[string]any)
		out = append(out, view{v.root, m}.branches()...)
	}
	return out
}

// child is the place of a key's value.
func (v view) child(key string) view {
	for _, b := range v.branches() {
		props, _ := b.here["properties"].(map[string]any)
		if m, ok := props[key].(map[string]any); ok {
			return view{v.root, m}
		}
		if m, ok := b.here["additionalProperties"].(map[string]any); ok {
			return view{v.root, m}
		}
	}
	return view{root: v.root}
}

// item is the place of a list's items.
func (v view) item() view {
	for _, b := range v.branches() {
		if m, ok := b.here["items"].(map[string]any); ok {
			return view{v.root, m}
		}
	}
	return view{root: v.root}
}

func (v view) integerKeys() bool {
	_, ok := v.deref().here["propertyNames"]
	return ok
}

// types says what a scalar may be. any is set where the schema says nothing.
type types struct{ any, text, number, boolean bool }

func (v view) types() types {
	if v.here == nil {
		return types{any: true}
	}
	var t types
	for _, b := range v.branches() {
		list, ok := b.here["type"].([]any)
		if !ok {
			list = []any{b.here["type"]}
		}
		for _, name := range list {
			switch name {
			case "string":
				t.text = true
			case "integer", "number":
				t.number = true
			case "boolean":
				t.boolean = true
			}
		}
	}
	return t
}

// saying is the sentence of the nearest schema at or above a path, and where
// it stands.
func (v view) saying(path []string) (string, view) {
	for i := len(path); i >= 0; i-- {
		at := v.at(path[:i])
		if s, ok := at.here["errorMessage"].(string); ok {
			return s, at
		}
	}
	return "must match the schema", v
}

// keys lists the names of the properties, sorted.
func (v view) keys() []string {
	props, _ := v.deref().here["properties"].(map[string]any)
	return sortedKeys(props)
}

// index reads a list index of a JSON pointer.
func index(part string, length int) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && i < length
}

func (v view) known(key string) bool {
	props, _ := v.deref().here["properties"].(map[string]any)
	_, ok := props[key]
	return ok
}
