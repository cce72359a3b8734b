package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// fault is a value that its key does not take.
type fault struct {
	want     string // "must be …"
	schema   view   // where that is said
	duration bool
}

// describe says it to the person who wrote the value.
func (f fault) describe(n *node) (rule, message, hint string) {
	if n.class == classNull && !n.quoted && !n.inserted && n.kind == scalar {
		return "yaml-null", n.label + " has no value", "remove the key or give it a value"
	}
	rule = "value"
	if !n.inserted && !n.class.usable() {
		rule = "yaml-type"
	}
	if f.wantsText(n) && n.class != classString && n.kind == scalar {
		return unquoted(n)
	}
	message = n.label + " " + f.want
	if f.duration {
		rule = "duration"
	}
	switch {
	case n.inserted:
		message += fmt.Sprintf("; the value of %s is not", short(maskURL(n.text)))
	case !n.sensitive():
		message += ", got " + n.shown()
	}
	if f.duration && n.kind == scalar {
		if !n.inserted {
			message += durationReason(n.value)
		}
		return rule, message, "units are " + durationUnits
	}
	return rule, message, f.hint(n)
}

func (f fault) hint(n *node) string {
	takes := f.schema.types()
	switch {
	case n.kind != scalar:
		return ""
	case n.quoted && takes.number && (classify(n.text).usable() || n.inserted) && classify(n.text) != classString:
		return "remove the quotes"
	case n.quoted && n.inserted && (takes.number || takes.boolean):
		return "remove the quotes: a plain ${…} takes the type that its key expects"
	case takes.number && n.class == classOddNumber:
		return "write the number in plain decimal digits"
	case takes.boolean && n.class == classOddBool:
		return "write " + plainBool(n.text)
	case n.inserted:
		return ""
	}
	if near := nearest(n.text, f.schema.enum()); near != "" && near != n.text {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

func plainBool(s string) string {
	switch strings.ToLower(s) {
	case "yes", "on", "true":
		return "true"
	}
	return "false"
}

// wantsText reports whether the value would do if it were text.
func (f fault) wantsText(n *node) bool {
	takes := f.schema.types()
	return takes.text && !takes.number && !takes.boolean && !f.duration && len(f.schema.enum()) == 0 && f.schema.takesText(n.text)
}

// unquoted reports text that YAML readers take for something else.
func unquoted(n *node) (rule, message, hint string) {
	if n.sensitive() {
		return "yaml-type", fmt.Sprintf("%s: YAML reads the value as %s", n.label, n.class.what()), "put it in quotes"
	}
	return "yaml-type", fmt.Sprintf("%s: YAML reads %s as %s", n.label, n.shown(), n.class.what()),
		"put it in quotes: " + quoteShort(n.text)
}

func durationReason(value string) string {
	dur, err := ParseDuration(value)
	switch {
	case err != nil:
		return ": " + err.Error()
	case dur == 0:
		return ": it must be longer than 0"
	}
	return ""
}

// takesText reports whether a text is of the form that the schema wants.
func (v view) takesText(text string) bool {
	return !slices.ContainsFunc(v.branches(), func(b view) bool {
		form, ok := b.here["pattern"].(string)
		return ok && !regexp.MustCompile(form).MatchString(text)
	})
}

// enum lists the words that a value may be.
func (v view) enum() []string {
	var out []string
	for _, b := range v.branches() {
		list, _ := b.here["enum"].([]any)
		for _, w := range list {
			if s, ok := w.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
