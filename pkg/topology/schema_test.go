package topology_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/schema"
)

// The schema and the registry are two lists of the same thing.
func TestStrategiesMatchTheSchema(t *testing.T) {
	t.Parallel()
	var doc struct {
		Defs struct {
			DelayStrategy struct {
				AnyOf []struct {
					Enum []string `json:"enum"`
				} `json:"anyOf"`
			} `json:"delayStrategy"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(schema.Queues, &doc); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, branch := range doc.Defs.DelayStrategy.AnyOf {
		want = append(want, branch.Enum...)
	}
	slices.Sort(want)
	if got := topology.Strategies(); !slices.Equal(got, want) {
		t.Errorf("Strategies() = %q, the schema allows %q", got, want)
	}
}
