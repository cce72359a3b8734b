package kinds

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

const aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTracesArePassedOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		parent, state any // headers of the message; nil: none
		want          [2]string
	}{
		{"both as they are", aTrace, "vendor=a%2Cb,other=1", [2]string{aTrace, "vendor=a%2Cb,other=1"}},
		{"a parent alone", aTrace, nil, [2]string{aTrace, ""}},
		{"byte arrays count as text", []byte(aTrace), []byte("a=b"), [2]string{aTrace, "a=b"}},
		{"a later version with more fields", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what", nil,
			[2]string{"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what", ""}},
		{"a state without a parent means nothing", nil, "a=b", [2]string{}},
		{"a parent that is none", "00-xyz", "a=b", [2]string{}},
		{"a parent that would end the header", aTrace + "\r\nX: y", "a=b", [2]string{}},
		{"a state that would end the header", aTrace, "a=b\r\nX: y", [2]string{aTrace, ""}},
		{"a state that is too long", aTrace, strings.Repeat("a", 513), [2]string{aTrace, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := hooks.Message{Headers: map[string]any{}}
			if tt.parent != nil {
				m.Headers["traceparent"] = tt.parent
			}
			if tt.state != nil {
				m.Headers["tracestate"] = tt.state
			}
			r := capture(t, m, nil)
			if got := [2]string{r.Header.Get("Traceparent"), r.Header.Get("Tracestate")}; got != tt.want {
				t.Errorf("the endpoint got %q, want %q", got, tt.want)
			}
			if got := traceInEnv(t, m); got != tt.want {
				t.Errorf("the command got %q, want %q", got, tt.want)
			}
		})
	}
}

// traceInEnv runs a command below a process that is traced itself.
func traceInEnv(t *testing.T, m hooks.Message) (got [2]string) {
	t.Helper()
	h := sh(t, `printf '%s\n%s\n' "$TRACEPARENT" "$TRACESTATE"`)
	h.Reply = true
	o, err := newHook(t, h, Options{Env: []string{"TRACEPARENT=rsctl's own", "TRACESTATE=x=y"}}).Handle(t.Context(), m)
	if err != nil || o.Verdict != hooks.Ack {
		t.Fatalf("%+v, %v", o, err)
	}
	copy(got[:], strings.Split(string(o.Reply), "\n"))
	return got
}

func TestATraceOfTheSpecStands(t *testing.T) {
	t.Parallel()
	r := capture(t, hooks.Message{Headers: map[string]any{"traceparent": aTrace, "tracestate": "a=b"}}, func(h *spec.Handler) {
		h.Headers = []spec.EnvVar{{Name: "traceparent", Value: spec.Text{Value: "mine"}}}
	})
	wantHeaders(t, r, map[string]string{"Traceparent": "mine"})
	if state := r.Header.Get("Tracestate"); state != "" {
		t.Errorf("Tracestate %q was sent for another trace", state)
	}
}

func TestABatchHasTheTraceThatItsMessagesShare(t *testing.T) {
	t.Parallel()
	other := strings.Replace(aTrace, "4bf9", "aaaa", 1)
	for _, tt := range []struct {
		name    string
		parents [2]any
		want    string
	}{
		{"the same", [2]any{aTrace, []byte(aTrace)}, aTrace},
		{"two", [2]any{aTrace, other}, ""},
		{"only one", [2]any{aTrace, nil}, ""},
		{"none", [2]any{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ms []hooks.Message
			for _, p := range tt.parents {
				ms = append(ms, hooks.Message{Headers: map[string]any{"traceparent": p, "tracestate": "a=b"}})
			}
			got := make(chan string, 2)
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Traceparent") })
			h := sh(t, `test "$TRACEPARENT" = "$WANT"`)
			h.Env = []spec.EnvVar{{Name: "WANT", Value: spec.Text{Value: tt.want}}}
			for _, h := range []*spec.Handler{httpHandler(s.URL), h} {
				each, err := newHook(t, h, Options{}).(hooks.BatchHook).HandleBatch(t.Context(), ms)
				if err != nil || len(each) != 2 || each[0].Verdict != hooks.Ack {
					t.Errorf("%s: %+v, %v, want Ack", h.Kind, each, err)
				}
			}
			if p := <-got; p != tt.want {
				t.Errorf("the endpoint got %q, want %q", p, tt.want)
			}
		})
	}
}
