package hooks

import (
	"strings"
	"testing"
)

const aParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                  string
		parent, state         any // headers of the message; nil: none
		wantParent, wantState string
	}{
		{"both as they are", aParent, "vendor=a%2Cb,other=1", aParent, "vendor=a%2Cb,other=1"},
		{"a parent alone", aParent, nil, aParent, ""},
		{"byte arrays count as text", []byte(aParent), []byte("a=b"), aParent, "a=b"},
		{"one that is not sampled", aParent[:54] + "0", nil, aParent[:54] + "0", ""},
		{"a later version", "cc" + aParent[2:], nil, "cc" + aParent[2:], ""},
		{"a later version with more fields", "cc" + aParent[2:] + "-what", nil, "cc" + aParent[2:] + "-what", ""},
		{"a state that is too long", aParent, strings.Repeat("a", 513), aParent, ""},
		{"a state as long as may be", aParent, strings.Repeat("a", 512), aParent, strings.Repeat("a", 512)},
		{"a state that would end the header", aParent, "a=b\r\nX: y", aParent, ""},

		{"a state without a parent means nothing", nil, "a=b", "", ""},
		{"a parent that is none", "00-xyz", "a=b", "", ""},
		{"half of one", aParent[:40], nil, "", ""},
		{"version 00 with more", aParent + "-more", nil, "", ""},
		{"a later version with more that is not separated", "cc" + aParent[2:] + "more", nil, "", ""},
		{"a later version with nothing more", "cc" + aParent[2:] + "-", nil, "", ""},
		{"a later version with too much more", "cc" + aParent[2:] + "-" + strings.Repeat("a", 201), nil, "", ""},
		{"a version that is none", "ff" + aParent[2:], nil, "", ""},
		{"upper case", strings.ToUpper(aParent), nil, "", ""},
		{"other separators", strings.ReplaceAll(aParent, "-", "_"), nil, "", ""},
		{"a trace id of zeros", "00-" + strings.Repeat("0", 32) + aParent[35:], nil, "", ""},
		{"a span id of zeros", aParent[:36] + strings.Repeat("0", 16) + "-01", nil, "", ""},
		{"a parent that would end the header", aParent + "\r\nX: y", "a=b", "", ""},
		{"a later version that would end the header", "cc" + aParent[2:] + "-a\r\nX: y", "a=b", "", ""},
		{"a number", int64(7), "a=b", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			headers := map[string]any{}
			if tt.parent != nil {
				headers[TraceParentHeader] = tt.parent
			}
			if tt.state != nil {
				headers[TraceStateHeader] = tt.state
			}
			if parent, state := TraceContext(headers); parent != tt.wantParent || state != tt.wantState {
				t.Errorf("got %q, %q, want %q, %q", parent, state, tt.wantParent, tt.wantState)
			}
		})
	}
	if parent, state := TraceContext(nil); parent != "" || state != "" {
		t.Errorf("without headers: %q, %q", parent, state)
	}
}
