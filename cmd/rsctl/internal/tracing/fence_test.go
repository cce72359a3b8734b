package tracing

import (
	"os/exec"
	"strings"
	"testing"
)

// Who runs hooks must not depend on who traces them.
func TestImports_OnlyThisPackageKnowsOpenTelemetry(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/rsctl/rsctl/pkg/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(dep, "go.opentelemetry.io/") {
			t.Errorf("a package below pkg depends on %s: see package tracing", dep)
		}
	}
}
