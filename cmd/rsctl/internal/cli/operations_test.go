package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"gopkg.in/yaml.v3"

	"github.com/rsctl/rsctl/pkg/metrics"
)

const (
	repository     = "../../../.."
	operationsPage = repository + "/docs/operations.md"
)

// section is the part of the page on operations under one heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(operationsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", operationsPage, heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// ourMetrics are the registered metrics of rsctl's own, as "name | type | labels".
func ourMetrics(t *testing.T) map[string]string {
	t.Helper()
	families, err := metrics.New(metrics.Build{}, []string{"q"}).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "rsctl_") {
			out[f.GetName()] = strings.ToLower(f.GetType().String()) + " | " + labelsOf(f)
		}
	}
	return out
}

func labelsOf(f *dto.MetricFamily) string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}

var metricRow = regexp.MustCompile("(?m)^\\| `(rsctl_[a-z_]+)` \\| ([a-z]+ \\| [^|]+?) \\| [^|]+ \\|$")

func TestThePageOnOperationsListsEveryMetric(t *testing.T) {
	t.Parallel()
	documented := map[string]string{}
	for _, m := range metricRow.FindAllStringSubmatch(section(t, "Metrics"), -1) {
		documented[m[1]] = m[2]
	}
	if got := ourMetrics(t); !maps.Equal(documented, got) {
		t.Errorf("%s documents\n%v\nand rsctl has\n%v", operationsPage, documented, got)
	}
}

// ruleFile is a file of Prometheus rules.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

var (
	yamlFence = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	metricUse = regexp.MustCompile(`\brsctl_[a-z_]+`)
	waitFor   = regexp.MustCompile(`^\d+[smhd]$`)
)

func TestTheAlertsAreRulesOverMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := ourMetrics(t)
	alerts := map[string]bool{}
	for _, m := range yamlFence.FindAllStringSubmatch(section(t, "Metrics"), -1) {
		var file ruleFile
		dec := yaml.NewDecoder(strings.NewReader(m[1]))
		dec.KnownFields(true)
		if err := dec.Decode(&file); err != nil {
			t.Fatalf("%v in\n%s", err, m[1])
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" || alerts[r.Alert] || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
					t.Errorf("rule %+v needs a name of its own, a severity and a summary", r)
				}
				if r.For != "" && !waitFor.MatchString(r.For) {
					t.Errorf("%s: for %q is no duration of Prometheus", r.Alert, r.For)
				}
				alerts[r.Alert] = true
				checkExpr(t, r.Alert, r.Expr, known)
			}
		}
	}
	if len(alerts) < 8 {
		t.Errorf("only %d alerts found", len(alerts))
	}
}

// checkExpr holds that the parentheses match and the metrics exist.
func checkExpr(t *testing.T, alert, expr string, known map[string]string) {
	t.Helper()
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			t.Errorf("%s: %s do not match in %s", alert, pair, expr)
		}
	}
	for _, name := range metricUse.FindAllString(expr, -1) {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if known[name] == "" && known[family] == "" {
			t.Errorf("%s uses %s, which rsctl does not have", alert, name)
		}
	}
}

var keyRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\| [^|]+ \\|$")

// Log keys are an interface: who adds one documents it.
func TestThePageOnOperationsListsEveryLogKey(t *testing.T) {
	t.Parallel()
	var documented []string
	for _, m := range keyRow.FindAllStringSubmatch(section(t, "Logs"), -1) {
		documented = append(documented, strings.Split(strings.ReplaceAll(m[1], "`", ""), ", ")...)
	}
	slices.Sort(documented)
	keys := map[string]bool{}
	for _, dir := range []string{"cmd/rsctl/internal/cli", "cmd/rsctl/internal/monitor", "cmd/rsctl/internal/tracing", "pkg/runtime", "pkg/runtime/internal/logkey", "pkg/service", "pkg/hooks/exec", "pkg/hooks/worker", "pkg/hooks/http", "pkg/hooks/internal/process", "pkg/topology/broker"} {
		collectKeys(t, filepath.Join(repository, dir), keys)
	}
	if used := slices.Sorted(maps.Keys(keys)); !slices.Equal(documented, used) {
		t.Errorf("%s documents\n%q\nand the code logs\n%q", operationsPage, documented, used)
	}
}

func collectKeys(t *testing.T, dir string, keys map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, arg := range keyArgs(n) {
					addLiteral(keys, arg)
				}
			case *ast.ValueSpec: // the runtime has constants for them
				if filepath.Base(dir) == "logkey" && len(n.Values) == 1 {
					addLiteral(keys, n.Values[0])
				}
			}
			return true
		})
	}
}

func addLiteral(keys map[string]bool, e ast.Expr) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			keys[text] = true
		}
	}
}

// firstKey is where the keys of a logging method begin.
var firstKey = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "rarely": 1, "once": 2}

// keyArgs are the arguments of a call that are log keys.
func keyArgs(call *ast.CallExpr) []ast.Expr {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "append" && len(call.Args) > 2 && isNamed(call.Args[0], "attrs") {
			return everySecond(call.Args[1:])
		}
	case *ast.SelectorExpr:
		if isNamed(fun.X, "slog") && len(call.Args) == 2 {
			return call.Args[:1] // slog.String("key", v) and its like
		}
		first, known := firstKey[fun.Sel.Name]
		if known && len(call.Args) > first && isLog(fun.X) {
			return everySecond(call.Args[first:])
		}
	}
	return nil
}

func everySecond(args []ast.Expr) (out []ast.Expr) {
	for i := 0; i < len(args); i += 2 {
		out = append(out, args[i])
	}
	return out
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// isLog reports whether e is a logger by its name: log, opts.Log, c.warned.
func isLog(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "log") || e.Sel.Name == "warned"
	}
	return false
}
