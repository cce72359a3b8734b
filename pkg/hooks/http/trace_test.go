package http

import (
	"net/http"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestTrace_IsPassedOn(t *testing.T) {
	t.Parallel()
	for _, tt := range hooktest.Traces {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			m := hooks.Message{Headers: map[string]any{}}
			if tt.Parent != nil {
				m.Headers["traceparent"] = tt.Parent
			}
			if tt.State != nil {
				m.Headers["tracestate"] = tt.State
			}
			r := capture(t, m, nil)
			if parent, state := r.Header.Get("Traceparent"), r.Header.Get("Tracestate"); parent != tt.ToldParent || state != tt.ToldState {
				t.Errorf("the endpoint got %q and %q, want %q and %q", parent, state, tt.ToldParent, tt.ToldState)
			}
		})
	}
}

func TestTrace_OfTheSpecStands(t *testing.T) {
	t.Parallel()
	r := capture(t, hooks.Message{Headers: map[string]any{"traceparent": hooktest.ATrace, "tracestate": "a=b"}}, func(h *spec.Handler) {
		h.Headers = []spec.EnvVar{{Name: "traceparent", Value: spec.Text{Value: "mine"}}}
	})
	wantHeaders(t, r, map[string]string{"Traceparent": "mine"})
	if state := r.Header.Get("Tracestate"); state != "" {
		t.Errorf("Tracestate %q was sent for another trace", state)
	}
}

func TestTrace_OfABatchIsWhatItsMessagesShare(t *testing.T) {
	t.Parallel()
	for _, tt := range hooktest.SharedTraces {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			var ms []hooks.Message
			for _, p := range tt.Parents {
				ms = append(ms, hooks.Message{Headers: map[string]any{"traceparent": p, "tracestate": "a=b"}})
			}
			got := make(chan string, 2)
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Traceparent") })
			each := hooktest.HandleBatch(t, newHook(t, httpHandler(s.URL), setup.Options{}), ms)
			if p := <-got; p != tt.Told || len(each) != 2 || each[0].Verdict != hooks.Ack {
				t.Errorf("got %+v; the endpoint got %q, want %q", each, p, tt.Told)
			}
		})
	}
}
