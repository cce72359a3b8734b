package tracing

import (
	"context"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

const aParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A recorder remembers what a hook was told, and answers from a list.
type recorder struct {
	told     []hooks.Message
	outcomes []hooks.Outcome
	err      error
}

func (r *recorder) Handle(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
	r.told = append(r.told, m)
	if r.err != nil {
		return hooks.Outcome{}, r.err
	}
	return r.outcomes[0], nil
}

type batchRecorder struct{ recorder }

func (r *batchRecorder) HandleBatch(_ context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	r.told = append(r.told, ms...)
	return r.outcomes, r.err
}

func TestTracer_StartsATraceForAMessageWithoutOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given map[string]any
		kept  bool
	}{
		{"none", nil, false},
		{"none among others", map[string]any{"tenant": "a"}, false},
		{"a good one", map[string]any{hooks.TraceParentHeader: aParent, hooks.TraceStateHeader: "a=b"}, true},
		{"a good one as bytes", map[string]any{hooks.TraceParentHeader: []byte(aParent)}, true},
		{"one that is not sampled", map[string]any{hooks.TraceParentHeader: strings.TrimSuffix(aParent, "1") + "0"}, true},
		{"a later version with more", map[string]any{hooks.TraceParentHeader: "cc" + aParent[2:] + "-more"}, true},
		{"version 00 with more", map[string]any{hooks.TraceParentHeader: aParent + "-more"}, false},
		{"a version that is none", map[string]any{hooks.TraceParentHeader: "ff" + aParent[2:]}, false},
		{"upper case", map[string]any{hooks.TraceParentHeader: strings.ToUpper(aParent)}, false},
		{"a trace id of zeros", map[string]any{hooks.TraceParentHeader: "00-" + strings.Repeat("0", 32) + aParent[35:]}, false},
		{"a span id of zeros", map[string]any{hooks.TraceParentHeader: aParent[:36] + strings.Repeat("0", 16) + "-01"}, false},
		{"half of one", map[string]any{hooks.TraceParentHeader: aParent[:40]}, false},
		{"a number", map[string]any{hooks.TraceParentHeader: int64(7), hooks.TraceStateHeader: "a=b"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.given[hooks.TraceParentHeader]
			r := &recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Drop}}}
			o, err := new(Tracer).Wrap(r).Handle(t.Context(), hooks.Message{Headers: tt.given, MessageID: "m"})
			if err != nil || o.Verdict != hooks.Drop || r.told[0].MessageID != "m" {
				t.Fatalf("got %+v, %v, want what the handler says to the message", o, err)
			}
			got := r.told[0].Headers
			if text, ok := before.([]byte); ok && tt.kept {
				before = string(text)
				got[hooks.TraceParentHeader] = string(got[hooks.TraceParentHeader].([]byte))
			}
			if same := got[hooks.TraceParentHeader] == before; same != tt.kept {
				t.Errorf("the handler is told %v of a message with %v", got[hooks.TraceParentHeader], before)
			}
			if _, state := got[hooks.TraceStateHeader]; !hasTrace(got[hooks.TraceParentHeader]) || state && !tt.kept {
				t.Errorf("the handler is told %v", got)
			}
		})
	}
}

func TestTracer_NewTracesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 10_000 {
		p := newParent()
		if seen[p[:36]] || !hasTrace(p) || !strings.HasSuffix(p, "-01") {
			t.Fatalf("%s came again, or is none", p)
		}
		seen[p[:36]] = true
	}
}

func TestTracer_WrapsABatchAsABatch(t *testing.T) {
	t.Parallel()
	r := &batchRecorder{recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Drop}}}}
	b, ok := new(Tracer).Wrap(r).(hooks.BatchHook)
	if !ok {
		t.Fatal("a handler that takes batches takes none any more")
	}
	got, err := b.HandleBatch(t.Context(), []hooks.Message{{MessageID: "1"}, {MessageID: "2", Headers: map[string]any{hooks.TraceParentHeader: aParent}}})
	if err != nil || len(got) != 2 || len(r.told) != 2 || !hasTrace(r.told[0].Headers[hooks.TraceParentHeader]) || r.told[1].Headers[hooks.TraceParentHeader] != aParent {
		t.Errorf("got %v, %v; the handler was told %v", got, err, r.told)
	}
	if _, ok := new(Tracer).Wrap(&r.recorder).(hooks.BatchHook); ok {
		t.Error("a handler that takes no batches seems to")
	}
}

// nothing is a hook that costs nothing.
type nothing struct{}

func (nothing) Handle(context.Context, hooks.Message) (hooks.Outcome, error) {
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func BenchmarkTracing(b *testing.B) {
	for name, t := range map[string]*Tracer{"off": {disabled: true}, "ids": {}, "spans": recording(nil)} {
		for what, parent := range map[string]any{"passed on": aParent, "started": nil} {
			b.Run(name+", "+what, func(b *testing.B) {
				h := t.Wrap(nothing{})
				ctx := context.Background()
				b.ReportAllocs()
				for b.Loop() {
					m := hooks.Message{Queue: "q", RoutingKey: "q", Headers: make(map[string]any)}
					if parent != nil {
						m.Headers[hooks.TraceParentHeader] = parent
					}
					h.Handle(ctx, m)
				}
			})
		}
	}
}

// hasTrace reports whether a header is a traceparent.
func hasTrace(header any) bool {
	parent, _ := hooks.TraceContext(map[string]any{hooks.TraceParentHeader: header})
	return parent != ""
}
