package spec

import (
	"strings"
	"unicode/utf8"
)

// syntaxHints say what usually stands behind the YAML library's words. The
// library names the line where the construct began that it could not finish.
var syntaxHints = []struct{ words, hint string }{
	{"mapping values are not allowed", `put a value that holds ": " in quotes, and look at the indentation`},
	{"cannot start any token", "put a value that begins with @, `, % or a tab in quotes"},
	{"did not find expected key", "look at the indentation, here and in the lines below"},
	{"did not find expected '-'", "look at the indentation, here and in the lines below"},
	{"unexpected end of stream", "a quote that is opened here is not closed"},
	{"did not find expected ','", "a bracket that is opened here is not closed, or a comma is missing"},
}

func syntaxHint(lines []string, line int, message string) string {
	for _, n := range []int{line, line + 1, line - 1} {
		if n >= 1 && n <= len(lines) && strings.Contains(lines[n-1], "${") {
			return `put a value with ${…} in quotes, above all inside [ ] and { }`
		}
	}
	for _, h := range syntaxHints {
		if strings.Contains(message, h.words) {
			return h.hint
		}
	}
	return ""
}

// find returns where text first stands.
func find(lines []string, text string) Pos {
	for i, line := range lines {
		if at := strings.Index(line, text); at >= 0 {
			return Pos{i + 1, utf8.RuneCountInString(line[:at]) + 1}
		}
	}
	return Pos{1, 1}
}
