package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rsctl/rsctl/schema"
)

const schemaURL = "queues.schema.json"

func compileSchema() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	if err := c.AddResource(schemaURL, bytes.NewReader(schema.Queues)); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// validate interpolates the nodes and holds them against the schema.
func (p *parser) validate(root *node) {
	sch, err := compiled()
	if err != nil {
		p.err(Pos{}, "schema", "the built-in schema does not compile: "+err.Error(), "this is a defect of rsctl")
		return
	}
	j := &jsonizer{parser: p, doc: document()}
	before := len(p.problems)
	err = sch.Validate(j.value(root, j.doc))
	if err == nil {
		return
	}
	e := &explainer{parser: p, root: root, doc: j.doc, done: map[*node]bool{}}
	e.explain(err)
	if len(p.problems) == before && !p.problems.HasErrors() {
		p.err(root.pos, "schema", "does not match the schema: "+short(err.Error()), "")
	}
}

// jsonizer turns nodes into the JSON values that the schema library takes. What
// YAML readers disagree on becomes null, which no key accepts.
type jsonizer struct {
	*parser
	doc view
}

func (j *jsonizer) value(n *node, v view) any {
	switch n.kind {
	case mapping:
		return j.mapping(n, v)
	case sequence:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, j.value(item, v.item()))
		}
		return list
	}
	j.interpolate(n)
	return j.scalar(n, v.types())
}

func (j *jsonizer) mapping(n *node, v view) any {
	object := make(map[string]any, len(n.entries))
	for _, e := range n.entries {
		if n.parent == nil && strings.HasPrefix(e.key, "x-") {
			continue
		}
		if e.class != classString && !(e.class == classInt && v.integerKeys()) {
			e.value.spoil()
			j.err(e.pos, "yaml-key", fmt.Sprintf("YAML reads the key %s as %s", short(e.key), e.class.what()),
				"put it in quotes: "+quoteShort(e.key))
		}
		object[e.key] = j.value(e.value, v.child(e.key))
	}
	return object
}

// scalar decides the type of a scalar. A plain ${VAR} takes the type that its
// key expects; where any type will do it is read as YAML would read it.
func (j *jsonizer) scalar(n *node, want types) any {
	if n.inserted && !n.quoted && !n.broken {
		n.class = insertedClass(n.value, want)
	}
	if want.any && !n.broken {
		j.verbatim(n)
	}
	switch n.class {
	case classString:
		// The schema lets ${ pass for the sake of editors; here it has been
		// replaced, and what is left of it is ordinary text.
		return strings.ReplaceAll(n.value, "${", "$(")
	case classBool:
		return n.value == "true"
	case classInt, classFloat:
		return json.Number(n.value)
	}
	return nil
}

func insertedClass(value string, want types) class {
	c := classify(value)
	switch {
	case want.text && !want.number && !want.boolean, !c.usable():
		return classString
	case want.any,
		want.number && (c == classInt || c == classFloat),
		want.boolean && c == classBool:
		return c
	}
	return classString
}

// verbatim refuses what would reach the server as something else than what is
// written. It is for arguments, whose types the schema does not know.
func (j *jsonizer) verbatim(n *node) {
	switch {
	case n.class == classNull:
		j.refuse(n, "yaml-null", n.label+" has no value", "remove the key or give it a value")
	case !n.class.usable():
		j.refuse(n, "yaml-type", fmt.Sprintf("%s: YAML readers disagree on %s, which some read as %s", n.label, n.shown(), n.class.what()),
			fmt.Sprintf("put text in quotes (%s); write numbers in plain decimal, and true or false", quoteShort(n.text)))
	case n.class == classInt:
		if _, err := parseInt64(n.value); err != nil {
			j.refuse(n, "yaml-type", fmt.Sprintf("%s must fit into 64 bits, got %s", n.label, n.shown()),
				"the largest is 9223372036854775807")
		}
	}
}

// compiled is the schema, compiled at its first use: it takes longer than
// parsing a small spec does, and version or completion do not need it.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema() })
