package settle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Deciding must stay possible without anything but the facts, so that explain,
// the docs and the runtime can never disagree.
func TestSettleDependsOnNothingOutside(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string]string{
		"net":                            "deciding does no I/O",
		"net/http":                       "deciding does no I/O",
		"os/exec":                        "hooks run in packages below pkg/hooks",
		"log/slog":                       "a warning is a step; the runtime logs it",
		"math/rand":                      "the draw for the jitter is one of the facts",
		"math/rand/v2":                   "the draw for the jitter is one of the facts",
		"github.com/rabbitmq/amqp091-go": "AMQP belongs to the runtime and to topology/broker",
		"gopkg.in/yaml.v3":               "the spec is compiled to a policy elsewhere",
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if why, bad := banned[dep]; bad {
			t.Errorf("settle depends on %s: %s", dep, why)
		}
	}
}

// Package time is there for durations. Its clock is not.
func TestSettleReadsNoClock(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"Duration": true, "Nanosecond": true, "Microsecond": true, "Millisecond": true, "Second": true, "Minute": true, "Hour": true}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !allowed[sel.Sel.Name] {
				t.Errorf("%s uses time.%s: the runtime owns the clock", name, sel.Sel.Name)
			}
			return true
		})
	}
}
