package tracing

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// recording is a tracer whose spans go to r; nil: nowhere.
func recording(r *tracetest.SpanRecorder) *Tracer {
	options := []sdktrace.TracerProviderOption{sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample()))}
	if r != nil {
		options = append(options, sdktrace.WithSpanProcessor(r))
	}
	return &Tracer{provider: sdktrace.NewTracerProvider(options...)}
}

// attributes are those of a span, as text.
func attributes(kvs []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}

// parentOf is what a hook in the span must be told.
func parentOf(s sdktrace.ReadOnlySpan) string {
	return "00-" + s.SpanContext().TraceID().String() + "-" + s.SpanContext().SpanID().String() + "-" + s.SpanContext().TraceFlags().String()
}

func TestSpan_OfARunIsInTheTraceOfItsMessage(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	r := &recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Ack}}}
	given := map[string]any{hooks.TraceParentHeader: []byte(aParent), hooks.TraceStateHeader: "vendor=a", "tenant": "x"}
	m := hooks.Message{
		Queue: "orders", Exchange: "events", RoutingKey: "order.new", Attempt: 2, MessageID: "m-1",
		CorrelationID: "c-1", Headers: maps.Clone(given), Body: []byte("12345"),
	}
	if o, err := recording(spans).Wrap(r).Handle(t.Context(), m); err != nil || o.Verdict != hooks.Ack {
		t.Fatalf("got %+v, %v", o, err)
	}
	s := spans.Ended()[0]
	if s.Parent().TraceID().String() != aParent[3:35] || s.Parent().SpanID().String() != aParent[36:52] || s.SpanKind() != trace.SpanKindConsumer ||
		s.Name() != "process orders" || s.Status().Code != codes.Unset {
		t.Errorf("the span is %+v", tracetest.SpanStubFromReadOnlySpan(s))
	}
	want := map[string]string{
		"messaging.system": "rabbitmq", "messaging.operation.type": "process", "messaging.operation.name": "process",
		"messaging.destination.name": "events:order.new:orders", "messaging.rabbitmq.destination.routing_key": "order.new",
		"messaging.message.id": "m-1", "messaging.message.conversation_id": "c-1", "messaging.message.body.size": "5",
		"rsctl.queue": "orders", "rsctl.attempt": "2", "rsctl.outcome": "ack",
	}
	if got := attributes(s.Attributes()); !maps.Equal(got, want) {
		t.Errorf("attributes\n got %v\nwant %v", got, want)
	}
	if got := r.told[0].Headers; got[hooks.TraceParentHeader] != parentOf(s) || got[hooks.TraceStateHeader] != "vendor=a" || got["tenant"] != "x" {
		t.Errorf("the handler was told %v, want the context of the span", got)
	}
	if string(m.Headers[hooks.TraceParentHeader].([]byte)) != aParent {
		t.Error("the headers of the message were changed")
	}
}

func TestSpan_SaysTheOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		outcome    hooks.Outcome
		err        error
		code       codes.Code
		reason     string
		word, kind string
	}{
		{"an ack", hooks.Outcome{Verdict: hooks.Ack, Reason: "fine"}, nil, codes.Unset, "", "ack", ""},
		{"a retry", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 75"}, nil, codes.Error, "exit status 75", "retry", "retry"},
		{"a crash is a retry", hooks.Outcome{Reason: "killed"}, nil, codes.Error, "killed", "retry", "retry"},
		{"a delay", hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 1}, nil, codes.Error, "", "retry_after", "retry_after"},
		{"a drop", hooks.Outcome{Verdict: hooks.Drop}, nil, codes.Error, "", "drop", "drop"},
		{"a handler that could not be run", hooks.Outcome{}, errors.New("refused"), codes.Error, "refused", "", "unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewSpanRecorder()
			o, err := recording(spans).Wrap(&recorder{outcomes: []hooks.Outcome{tt.outcome}, err: tt.err}).Handle(t.Context(), hooks.Message{Queue: "q"})
			if err != tt.err || tt.err == nil && o.Verdict != tt.outcome.Verdict {
				t.Errorf("got %+v, %v", o, err)
			}
			s := spans.Ended()[0]
			got := attributes(s.Attributes())
			if s.Status().Code != tt.code || s.Status().Description != tt.reason || got["rsctl.outcome"] != tt.word || got["error.type"] != tt.kind {
				t.Errorf("status %+v, attributes %v", s.Status(), got)
			}
			if s.Parent().IsValid() || got["messaging.destination.name"] != "q" {
				t.Errorf("parent %v, attributes %v; want a new trace of q", s.Parent(), got)
			}
		})
	}
}

func TestSpan_OfAMessageThatIsNotSampledIsNot(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	r := &recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Ack}}}
	unsampled := aParent[:53] + "00"
	recording(spans).Wrap(r).Handle(t.Context(), hooks.Message{Queue: "q", Headers: map[string]any{hooks.TraceParentHeader: unsampled}})
	told, _ := r.told[0].Headers[hooks.TraceParentHeader].(string)
	if len(spans.Ended()) != 0 || !hasTrace(told) || told[:36] != unsampled[:36] || told[53:] != "00" {
		t.Errorf("%d spans; the handler was told %q", len(spans.Ended()), told)
	}
}

func TestSpan_OfABatchLinksToEachTrace(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	r := &batchRecorder{recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Drop, Reason: "no"}, {Verdict: hooks.Ack}}}}
	second := "00-" + aParent[4:35] + "0" + aParent[35:]
	ms := []hooks.Message{
		{Queue: "rows", MessageID: "1", Attempt: 1, Headers: map[string]any{hooks.TraceParentHeader: aParent}},
		{Queue: "rows", MessageID: "2", Attempt: 3, Headers: map[string]any{hooks.TraceParentHeader: second}},
		{Queue: "rows", MessageID: "3", Attempt: 1},
	}
	for range 2 { // as when the hook could not be run at first
		if got, err := recording(spans).Wrap(r).(hooks.BatchHook).HandleBatch(t.Context(), ms); err != nil || len(got) != 3 {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	s := spans.Ended()[1]
	var linked []string
	for _, l := range s.Links() {
		linked = append(linked, l.SpanContext.TraceID().String()+" "+attributes(l.Attributes)["messaging.message.id"]+" "+attributes(l.Attributes)["rsctl.attempt"])
	}
	if want := []string{aParent[3:35] + " 1 1", second[3:35] + " 2 3"}; !slices.Equal(linked, want) || s.Parent().IsValid() {
		t.Errorf("links %q below %v, want %q and no parent", linked, s.Parent(), want)
	}
	got := attributes(s.Attributes())
	if got["messaging.batch.message_count"] != "3" || got["rsctl.outcomes.ack"] != "2" || got["rsctl.outcomes.drop"] != "1" || s.Status().Description != "no" {
		t.Errorf("attributes %v, status %+v", got, s.Status())
	}
	for _, m := range r.told[3:] {
		if m.Headers[hooks.TraceParentHeader] != parentOf(s) {
			t.Errorf("the handler was told %v, want the context of the batch", m.Headers)
		}
	}
}
