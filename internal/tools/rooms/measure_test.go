package main

import (
	"slices"
	"testing"
)

func TestLargestCycle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		graph map[string][]string
		want  []string
	}{
		{"files that use others one way are in none", map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}, nil},
		{"two that use each other are one", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": nil}, []string{"a", "b"}},
		{"a way back over others counts", map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}, []string{"a", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := largestCycle(tt.graph); !slices.Equal(got, tt.want) {
				t.Errorf("largestCycle() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	m := measure{cycle: []string{"a.go", "b.go"}, methods: 31, largest: "thing"}
	if got := m.over(bounds{cycle: 1, methods: 30}); len(got) != 2 {
		t.Errorf("over() = %q, want the cycle and the methods", got)
	}
	if got := m.over(bounds{cycle: 2, methods: 31}); got != nil {
		t.Errorf("over() = %q, want none", got)
	}
}

// An entry whose package is in order would hide that it gets worse again.
func TestLimitsAreNeeded(t *testing.T) {
	t.Parallel()
	measured, err := load("github.com/rsctl/rsctl/...")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for path := range limits {
		left[path] = true
	}
	for _, m := range measured {
		b, listed := limits[m.path]
		delete(left, m.path)
		if listed && (len(m.cycle) < b.cycle && b.cycle > usual.cycle || m.methods < b.methods && b.methods > usual.methods) {
			t.Errorf("%s has %d files in a cycle and %d methods of %s; lower its limits %+v", m.path, len(m.cycle), m.methods, m.largest, b)
		}
	}
	for path := range left {
		t.Errorf("there is no package %s", path)
	}
}
