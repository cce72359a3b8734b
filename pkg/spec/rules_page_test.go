package spec

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const rulesPage = "../../docs/rules.md"

// pageHead is what the page begins with; the rest is made of the tables in
// docs/spec.md and of the golden files.
const pageHead = `# Rules

What ` + "`rsctl validate`" + ` finds, and every command that reads a spec, with a file that shows it and the lines that are printed for it; one more counts them. An error stops every command; a warning does not. The word in brackets at the end of a line is the rule's id and does not change. All problems of a file are reported in one run.

[spec.md](spec.md#rules) has the same rules as a list. What ` + "`rsctl check`" + ` finds on the broker is in [operations.md](operations.md).
`

// documentedRule is a row of one of the tables in docs/spec.md.
type documentedRule struct{ id, says, kind string }

var (
	kindOfTable = regexp.MustCompile(`(?m)^(Errors in how the file is written|Errors in what it means|Warnings):$`)
	rowOfTable  = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| ([^|]*) \\|$")
)

func documentedRows(t *testing.T) []documentedRule {
	t.Helper()
	_, section, _ := strings.Cut(string(readFile(t, docsFile)), "\n## Rules")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []documentedRule
	for _, at := range kindOfTable.FindAllStringSubmatchIndex(section, -1) {
		kind, table := section[at[2]:at[3]], section[at[1]:]
		if next := kindOfTable.FindStringIndex(table); next != nil {
			table = table[:next[0]]
		}
		for _, m := range rowOfTable.FindAllStringSubmatch(table, -1) {
			rows = append(rows, documentedRule{id: m[1], says: m[2], kind: kind})
		}
	}
	return rows
}

// pair is a golden file and the ids of what it shows.
type pair struct {
	name, text, out string
	ids             []string
}

func goldenPairs(t *testing.T) []pair {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.out")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var all []pair
	for _, file := range files {
		text := strings.TrimSuffix(file, ".out") + ".yaml"
		p := pair{name: filepath.Base(text), text: string(readFile(t, text)), out: string(readFile(t, file))}
		p.ids = captures(shownRule, p.out)
		all = append(all, p)
	}
	return all
}

// example is the pair that shows rule id with the least beside it.
func example(pairs []pair, id string) (pair, bool) {
	with := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !slices.Contains(p.ids, id) })
	if len(with) == 0 {
		return pair{}, false
	}
	return slices.MinFunc(with, func(a, b pair) int {
		return cmp.Or(
			cmp.Compare(len(a.ids), len(b.ids)),
			cmp.Compare(strings.Count(a.text, "\n"), strings.Count(b.text, "\n")),
			cmp.Compare(a.name, b.name))
	}), true
}

func writeRulesPage(t *testing.T) string {
	t.Helper()
	pairs := goldenPairs(t)
	var page strings.Builder
	page.WriteString(pageHead)
	kind := ""
	for _, row := range documentedRows(t) {
		if row.kind != kind {
			kind = row.kind
			fmt.Fprintf(&page, "\n## %s\n", kind)
		}
		fmt.Fprintf(&page, "\n### %s\n\n%s.\n", row.id, capital(row.says))
		if p, ok := example(pairs, row.id); ok {
			fmt.Fprintf(&page, "\n```yaml\n%s\n```\n\n```console\n$ rsctl -f %s validate\n%s\n```\n", printable(p.text), p.name, printable(p.out))
		}
	}
	return page.String()
}

// printable keeps what a page cannot show out of an example: a tab is the mistake of
// one of them.
func printable(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\t", "→"), "\n")
}

// capital begins text with a capital letter, unless it begins with code.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// The page is made of what the other tests hold: the tables, and the golden files.
// Run with UPDATE=1 to write it.
func TestRulesPageShowsEveryRuleWithItsOutput(t *testing.T) {
	t.Parallel()
	want := writeRulesPage(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(rulesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(readFile(t, rulesPage)); got != want {
		t.Errorf("docs/rules.md is stale; run: UPDATE=1 go test -run RulesPage ./pkg/spec")
	}
	for _, r := range rules {
		if !strings.Contains(want, "\n### "+r.id+"\n") {
			t.Errorf("rule %s is not on the page", r.id)
		}
	}
}
