package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// read turns bytes into resolved nodes. It reports false when there is nothing
// that later stages could look at.
func (p *parser) read(data []byte) (*node, bool) {
	if !p.checkEncoding(data) {
		return nil, false
	}
	doc, ok := p.decodeYAML(data)
	if !ok {
		return nil, false
	}
	if doc == nil || len(doc.Content) == 0 {
		return &node{class: classNull, pos: Pos{1, 1}}, true
	}
	r := &resolver{parser: p, anchors: map[*yaml.Node]bool{}}
	root := r.resolve(doc.Content[0], nil, "the file")
	return root, !r.stopped
}

func (p *parser) checkEncoding(data []byte) bool {
	const rule, hint = "yaml-encoding", "save the file as UTF-8"
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		p.err(Pos{1, 1}, rule, "the file is UTF-16", hint)
	case !utf8.Valid(data):
		p.err(badByte(data), rule, "the file is not UTF-8", hint)
	default:
		return true
	}
	return false
}

func badByte(data []byte) Pos {
	at := Pos{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		at.Col++
		if r == '\n' {
			at = Pos{at.Line + 1, 1}
		}
		data = data[size:]
	}
	return at
}

// decodeYAML returns the only document of the file; nil without an error when
// the file holds none.
func (p *parser) decodeYAML(data []byte) (*yaml.Node, bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := decodeOne(dec, &doc); {
	case errors.Is(err, io.EOF):
		return nil, true
	case err != nil:
		p.syntax(data, err)
		return nil, false
	}
	switch err := decodeOne(dec, &second); {
	case errors.Is(err, io.EOF):
		return &doc, true
	case err != nil:
		p.syntax(data, err)
	default:
		p.err(Pos{second.Line, second.Column}, "yaml-document",
			fmt.Sprintf("second document at line %d", second.Line),
			"a spec is one document: put all queues in one list, or split the file")
	}
	return nil, false
}

// decodeOne keeps a defect of the YAML library from ending the process.
func decodeOne(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(into)
}

var (
	yamlLine      = regexp.MustCompile(`line ([0-9]+): `)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	parserMessage = regexp.MustCompile(`^did not find expected (key|node content|',' or|'-'|<)`)
)

// syntax reports what the YAML library could not read. Its own words for a tab
// ("found character that cannot start any token") do not say tab, so look.
func (p *parser) syntax(data []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = strings.Replace(message, m[0], "", 1)
		if parserMessage.MatchString(message) {
			line++ // these count lines from 0
		}
	}
	lines := strings.Split(string(data), "\n")
	if tab, col := tabNear(lines, line); tab > 0 {
		p.err(Pos{tab, col}, "yaml-tab", fmt.Sprintf("line %d is indented with a tab", tab), "YAML indents with spaces")
		return
	}
	at := Pos{line, 1}
	if m := unknownAnchor.FindStringSubmatch(message); m != nil {
		at = find(lines, "*"+m[1])
	}
	p.err(at, "yaml-syntax", "not valid YAML: "+short(message), syntaxHint(lines, line, message))
}

// tabNear finds a line indented with a tab at the line of an error, or at its
// neighbours: the library is one off in both directions.
func tabNear(lines []string, line int) (at, col int) {
	for _, n := range []int{line, line + 1, line - 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		text := strings.TrimPrefix(lines[n-1], "\ufeff")
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t-"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 {
			return n, i + 1
		}
	}
	return 0, 0
}
