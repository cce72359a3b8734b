package runtime

import (
	"os/exec"
	"strings"
	"testing"
)

// What a run tells its observer must not depend on who listens, and the broker in
// memory is for tests.
func TestRuntimeKnowsNoMetricsLibraryAndNoBrokerInMemory(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(dep, "github.com/prometheus/") || strings.HasSuffix(dep, "/pkg/metrics") {
			t.Errorf("package runtime depends on %s: counting is an Observer's, see package metrics", dep)
		}
		if strings.HasSuffix(dep, "/membroker") {
			t.Errorf("package runtime depends on %s, which is for its tests", dep)
		}
	}
}
