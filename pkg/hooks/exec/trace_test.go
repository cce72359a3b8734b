package exec

import (
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A command is told the trace of its message, whatever trace rsctl itself runs in.
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
			h := hooktest.Shell(t, `printf '%s\n%s\n' "$TRACEPARENT" "$TRACESTATE"`)
			h.Reply = true
			o := hooktest.Handle(t, newHook(t, h, setup.Options{Env: []string{"TRACEPARENT=rsctl's own", "TRACESTATE=x=y"}}), m)
			if got := strings.Split(string(o.Reply), "\n"); o.Verdict != hooks.Ack || got[0] != tt.ToldParent || got[1] != tt.ToldState {
				t.Errorf("%v: the command got %q, want %q and %q", o.Verdict, got, tt.ToldParent, tt.ToldState)
			}
		})
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
			h := hooktest.Shell(t, `test "$TRACEPARENT" = "$WANT"`)
			h.Env = []spec.EnvVar{{Name: "WANT", Value: spec.Text{Value: tt.Told}}}
			each := hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), ms)
			if len(each) != 2 || each[0].Verdict != hooks.Ack {
				t.Errorf("got %+v, want Ack: the command was told another trace than %q", each, tt.Told)
			}
		})
	}
}
