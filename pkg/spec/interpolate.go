package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	withRest = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*):([-?])(.*)$`)
)

// interpolate fills n.value from n.text:
//
//	${VAR}            the variable; an error when it is not set
//	${VAR:-default}   the default when it is not set or empty
//	${VAR:?message}   an error with the message when it is not set or empty
//	${file:PATH}      the file's text without its last line break
//	$${               a literal ${
//
// Any other $ stands for itself, so that passwords and patterns need no escape.
func (p *parser) interpolate(n *node) {
	if n.ready || n.kind != scalar {
		return
	}
	n.ready = true
	n.value = n.text
	if !n.interpolated() {
		return
	}
	value, inserted, err := p.options.expand(n.text)
	if err != nil {
		var e *expandError
		hint := ""
		if errors.As(err, &e) {
			hint = e.hint
		}
		p.refuse(n, "interpolation", err.Error(), hint)
		return
	}
	n.value, n.inserted = value, inserted
}

type expandError struct{ message, hint string }

func (e *expandError) Error() string { return e.message }

// expand replaces every ${…} of text. inserted is false when the text held
// escapes only.
func (o Options) expand(text string) (value string, inserted bool, err error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), inserted, nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		inner, rest, ok := strings.Cut(text[i+2:], "}")
		if !ok {
			return "", false, &expandError{"a ${ has no closing }", "write $${ for a literal ${"}
		}
		part, err := o.lookup(inner)
		if err != nil {
			return "", false, err
		}
		b.WriteString(part)
		text, inserted = rest, true
	}
}

// lookup returns what stands for ${inner}.
func (o Options) lookup(inner string) (string, error) {
	if path, ok := strings.CutPrefix(inner, "file:"); ok {
		return o.file(path)
	}
	if variable.MatchString(inner) {
		v, ok := o.env(inner)
		if !ok {
			return "", &expandError{fmt.Sprintf("the variable %s is not set", inner),
				fmt.Sprintf("set it, or give a default: ${%s:-value}", inner)}
		}
		return v, nil
	}
	m := withRest.FindStringSubmatch(inner)
	switch {
	case m == nil:
		return "", &expandError{"a ${…} is not a reference to a variable or a file",
			"write ${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:PATH}; write $${ for a literal ${"}
	case strings.Contains(m[3], "${"):
		return "", &expandError{fmt.Sprintf("the default of ${%s:%s…} holds another ${…}", m[1], m[2]), "a default is plain text"}
	}
	v, _ := o.env(m[1])
	switch {
	case v != "":
		return v, nil
	case m[2] == "-":
		return m[3], nil
	}
	return "", &expandError{requireMessage(m[1], m[3]), "set the variable " + m[1]}
}

func requireMessage(name, message string) string {
	if message == "" {
		return fmt.Sprintf("the variable %s is not set", name)
	}
	return fmt.Sprintf("the variable %s is not set: %s", name, short(message))
}

func (o Options) env(name string) (string, bool) {
	if o.LookupEnv == nil {
		return "", false
	}
	return o.LookupEnv(name)
}

func (o Options) file(path string) (string, error) {
	shown := quoteShort(path)
	switch {
	case path == "":
		return "", &expandError{"${file:} names no file", "write ${file:PATH}"}
	case o.ReadFile == nil:
		return "", &expandError{"cannot read " + shown + ": files are not available here", ""}
	}
	data, err := o.ReadFile(o.path(path))
	if err != nil {
		return "", &expandError{fmt.Sprintf("cannot read %s: %s", shown, fileFault(err)), "relative paths start at the directory of the spec"}
	}
	s := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(s, "\r"), nil
}

// fileFault leaves out the resolved path, which the message has as written.
func fileFault(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// path resolves a path of the spec.
func (o Options) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(o.Dir, p)
}
