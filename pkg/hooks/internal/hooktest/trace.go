package hooktest

import "strings"

// ATrace is a traceparent.
const ATrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Traces are what messages bring along, and what a handler has to be told; "" is
// nothing.
var Traces = []struct {
	Name                  string
	Parent, State         any // headers of the message; nil: none
	ToldParent, ToldState string
}{
	{"both as they are", ATrace, "vendor=a%2Cb,other=1", ATrace, "vendor=a%2Cb,other=1"},
	{"a parent alone", []byte(ATrace), nil, ATrace, ""},
	{"a state without a parent", nil, "a=b", "", ""},
	{"a parent that would end the header", ATrace + "\r\nX: y", "a=b", "", ""},
	{"a state that would end the header", ATrace, "a=b\r\nX: y", ATrace, ""},
}

// SharedTraces are the traceparents of two messages, and what the handler of a
// batch of them has to be told.
var SharedTraces = []struct {
	Name    string
	Parents [2]any
	Told    string
}{
	{"the same", [2]any{ATrace, []byte(ATrace)}, ATrace},
	{"two", [2]any{ATrace, strings.Replace(ATrace, "4bf9", "aaaa", 1)}, ""},
	{"only one", [2]any{ATrace, nil}, ""},
	{"none", [2]any{}, ""},
}
