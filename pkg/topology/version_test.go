package topology_test

import (
	"testing"

	"github.com/rsctl/rsctl/pkg/topology"
)

func TestServerVersions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		version          string
		known, four, new bool // 4.0 or newer, 4.3 or newer
	}{
		{"3.10.8", true, false, false},
		{"3.13.7+dfsg-1", true, false, false},
		{"4.0.5", true, true, false},
		{"4.2", true, true, false},
		{"4.3.0-rc.1", true, true, true},
		{"4.3-beta", true, true, true},
		{"4.10.0", true, true, true},
		{"5.0.0", true, true, true},
		{"", false, true, true},
		{"unknown", false, true, true},
		{"4.x", false, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.version, func(t *testing.T) {
			t.Parallel()
			s := topology.Server{Version: tt.version}
			if s.Known() != tt.known || s.AtLeast(4, 0) != tt.four || s.Native() != tt.new {
				t.Errorf("known %t, 4.0 %t, 4.3 %t; want %t, %t, %t", s.Known(), s.AtLeast(4, 0), s.Native(), tt.known, tt.four, tt.new)
			}
		})
	}
}
