package spec

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/schema"
)

const docsFile = "../../docs/spec.md"

var fence = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// What the page shows must work. An example that begins with queues: stands for
// the rest of a spec that declares its topology.
func TestDocumentationExamplesParse(t *testing.T) {
	t.Parallel()
	examples := fence.FindAllStringSubmatch(string(readFile(t, docsFile)), -1)
	if len(examples) < 5 {
		t.Fatalf("%d examples in %s", len(examples), docsFile)
	}
	for _, m := range examples {
		text := m[1]
		if strings.HasPrefix(text, "queues:") {
			text = "version: 1\ndeclare_topology: true\n" + text
		}
		o := testOptions("spec.md")
		o.ReadFile = func(string) ([]byte, error) { return []byte("secret\n"), nil }
		if _, problems := Parse([]byte(text), o); len(problems) > 0 {
			t.Errorf("%s\nin the example:\n%s", problems, text)
		}
	}
}

var ruleRow = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| [^|]*\\|$")

// The tables of ids, the rules in the code and the golden files are three lists
// of the same thing.
func TestEveryRuleIsDocumentedAndHasAGoldenPair(t *testing.T) {
	t.Parallel()
	documented := documentedRules(t)
	shown := shownRules(t)
	for _, r := range rules {
		if !slices.Contains(shown, r.id) {
			t.Errorf("no golden file shows rule %s", r.id)
		}
	}
	if !slices.Equal(documented, shown) {
		t.Errorf("%s documents\n%q\nand the golden files show\n%q", docsFile, documented, shown)
	}
}

func documentedRules(t testing.TB) []string {
	t.Helper()
	_, section, _ := strings.Cut(string(readFile(t, docsFile)), "\n## Rules")
	return captures(ruleRow, section)
}

var shownRule = regexp.MustCompile(`(?m)\[([a-z0-9-]+)\]$`)

// shownRules are the ids in the golden files, and that of files that are no
// text, which a golden file cannot be.
func shownRules(t *testing.T) []string {
	t.Helper()
	return captures(shownRule, goldenText(t)+"[yaml-encoding]")
}

func captures(re *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func goldenText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.out")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.Write(readFile(t, file))
	}
	return all.String()
}

// Every key of the schema is on the page, and has what an editor shows.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	page := string(readFile(t, docsFile))
	defs, _ := document().here["$defs"].(map[string]any)
	for name := range defs {
		checkKeys(t, page, name, document().at([]string{"$defs", name}))
	}
	checkKeys(t, page, "top level", document())
}

func checkKeys(t *testing.T, page, where string, v view) {
	t.Helper()
	props, _ := v.here["properties"].(map[string]any)
	for key, p := range props {
		if !strings.Contains(page, "`"+key+"`") {
			t.Errorf("%s: key %s is not in %s", where, key, docsFile)
		}
		if m, _ := p.(map[string]any); m["description"] == nil {
			t.Errorf("%s: key %s has no description in the schema", where, key)
		}
	}
}

// Examples and defaults are what an editor offers: they must be valid.
func TestSchemaExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"queue", "exchange", "binding"} {
		props, _ := document().at([]string{"$defs", queue, "properties"}).here, 0
		for key, p := range props {
			m, _ := p.(map[string]any)
			examples, _ := m["examples"].([]any)
			if d, ok := m["default"]; ok {
				examples = append(examples, d)
			}
			for _, example := range examples {
				tryExample(t, queue, key, example)
			}
		}
	}
}

func tryExample(t *testing.T, def, key string, example any) {
	t.Helper()
	value, err := json.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	item := map[string]string{"queue": "type: classic", "exchange": "durable: true", "binding": "arguments: {}"}[def]
	text := "{" + item + ", " + key + ": " + string(value)
	for need, v := range map[string]string{"queue": "name: q", "exchange": "name: x", "binding": "exchange: e"} {
		if k, _, _ := strings.Cut(v, ":"); need == def && k != key {
			text += ", " + v
		}
	}
	if def == "exchange" && key != "type" {
		text += ", type: topic"
	}
	text = strings.Replace(text+"}", "durable: true, durable", "durable", 1)
	text = strings.Replace(text, "arguments: {}, arguments", "arguments", 1)
	text = strings.Replace(text, "type: classic, type", "type", 1)
	whole := "version: 1\n" + map[string]string{
		"queue":    "queues: [" + text + "]",
		"exchange": "exchanges: [" + text + "]\nqueues: [{name: q, type: classic}]",
		"binding":  "queues: [{name: q, type: classic, bindings: [" + text + "]}]",
	}[def] + "\n"
	_, problems := Parse([]byte(whole), testOptions("example"))
	for _, p := range problems {
		// What a single key means without its companions is for the rules.
		if slices.Contains([]string{"value", "yaml-type", "duration", "unknown-key", "missing-key"}, p.Rule) {
			t.Errorf("%s.%s: %s\n%s", def, key, p, whole)
		}
	}
}

func TestSchemaIsDraft2020AndCompiles(t *testing.T) {
	t.Parallel()
	if _, err := compileSchema(); err != nil {
		t.Fatal(err)
	}
	var head struct {
		Schema string `json:"$schema"`
		Title  string `json:"title"`
	}
	if err := json.Unmarshal(schema.Queues, &head); err != nil {
		t.Fatal(err)
	}
	if head.Schema != "https://json-schema.org/draft/2020-12/schema" || head.Title == "" {
		t.Errorf("head of the schema: %+v", head)
	}
}

// What defaults may hold is written twice in the schema.
func TestDefaultsAreTheQueueKeysThatMayBeDefaulted(t *testing.T) {
	t.Parallel()
	var want []string
	for _, key := range document().at([]string{"$defs", "queue"}).keys() {
		if !slices.Contains(notDefaulted, key) {
			want = append(want, key)
		}
	}
	if got := document().at([]string{"$defs", "defaults"}).keys(); !slices.Equal(got, want) {
		t.Errorf("defaults take %q, want %q", got, want)
	}
}
