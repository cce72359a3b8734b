package topology_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Compiling a spec must stay possible without a network, and the same spec must
// give the same topology at any time.
func TestCompilingIsPure(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string]string{
		"net/http":                       "the management API belongs to topology/broker",
		"os/exec":                        "hooks run in packages below pkg/hooks",
		"github.com/rabbitmq/amqp091-go": "AMQP belongs to topology/broker",
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if why, bad := banned[dep]; bad {
			t.Errorf("topology depends on %s: %s", dep, why)
		}
	}
}

func TestNoFileReadsTheClock(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"time.Now", "time.Since", "time.After", "time.Sleep"} {
			if strings.Contains(string(text), call) {
				t.Errorf("%s uses %s: time is a fact that the runtime brings", name, call)
			}
		}
	}
}
