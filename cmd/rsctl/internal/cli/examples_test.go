package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// What the project shows as examples must be valid, and explain must have a
// complete table for every queue in them.
func TestEveryExampleIsExplained(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples found: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			code, out, errs := runMain(t, "", "-f", path, "explain", "--output", "json")
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			var doc explainJSON
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatal(err)
			}
			for _, q := range doc.Queues {
				checkOutcomes(t, q)
			}
		})
	}
}

// checkOutcomes wants a row for every outcome, each with an effect and with one
// settling step, which is the last.
func checkOutcomes(t *testing.T, q explainQueue) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range q.Outcomes {
		name, _, _ := strings.Cut(row.Outcome, " ")
		seen[name] = true
		last := row.Steps[len(row.Steps)-1]
		if row.Effect == "" || !strings.HasPrefix(last, "basic.") {
			t.Errorf("queue %q, %s %s: effect %q, last step %q", q.Name, row.Outcome, row.When, row.Effect, last)
		}
	}
	for _, name := range []string{"ack", "drop", "retry", "retry_after"} {
		if !seen[name] {
			t.Errorf("queue %q has no row for %s", q.Name, name)
		}
	}
}
