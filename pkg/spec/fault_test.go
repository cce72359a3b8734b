package spec

import "testing"

// Somebody may reword what the schema says of a key; what is proposed for a value
// follows from its type.
func TestFaultHintsFollowFromTypesNotFromWords(t *testing.T) {
	t.Parallel()
	of := func(schema map[string]any) view { return view{here: schema} }
	number, boolean := of(map[string]any{"type": "integer"}), of(map[string]any{"type": "boolean"})
	name := of(map[string]any{"type": "string", "pattern": `^\P{Cc}*$`})
	rate := of(map[string]any{"type": "string", "pattern": `^[0-9]+/s$`})
	plain := func(text string) *node {
		return &node{label: "key", text: text, value: text, class: classify(text)}
	}
	quoted := func(text string) *node {
		return &node{label: "key", text: text, value: text, class: classString, quoted: true}
	}
	for _, tt := range []struct {
		what   string
		schema view
		n      *node
		want   string
	}{
		{"a number in quotes", number, quoted("5"), "remove the quotes"},
		{"a number in another notation", number, plain("0x10"), "write the number in plain decimal digits"},
		{"a word for true", boolean, plain("yes"), "write true"},
		{"a number where any text will do", name, plain("42"), `put it in quotes: "42"`},
		{"a number where text of a form is wanted that it has not", rate, plain("42"), ""},
		{"a misspelt word", of(map[string]any{"type": "string", "enum": []any{"classic", "quorum"}}), quoted("clasic"), `did you mean "classic"?`},
	} {
		for _, words := range []string{"must be true or false", "must be text", "must be a number", "must be 1", "is wrong"} {
			if _, _, hint := (fault{want: words, schema: tt.schema}).describe(tt.n); hint != tt.want {
				t.Errorf("%s, in a schema that says %q: the hint is %q, want %q", tt.what, words, hint, tt.want)
			}
		}
	}
}
