package tracing

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// spanHook makes one span of each run, in the trace of the message.
type spanHook struct {
	hook   hooks.Hook
	tracer trace.Tracer
}

var propagator propagation.TraceContext

// extract adds the trace that headers bring along. What counts as one is said by
// [hooks.TraceContext] alone, so that a handler and its span are in the same trace.
func extract(ctx context.Context, given map[string]any) context.Context {
	parent, state := hooks.TraceContext(given)
	return propagator.Extract(ctx, propagation.MapCarrier{hooks.TraceParentHeader: parent, hooks.TraceStateHeader: state})
}

// Handle implements [hooks.Hook].
func (h spanHook) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	parent := extract(ctx, m.Headers)
	span := h.start(parent, m.Queue, trace.WithAttributes(describeMessage(&m)...))
	m.Headers = inside(span, m.Headers)
	o, err := h.hook.Handle(ctx, m)
	end(span, []hooks.Outcome{o}, err)
	return o, err
}

func (h spanHook) start(parent context.Context, queue string, options ...trace.SpanStartOption) trace.Span {
	_, span := h.tracer.Start(parent, "process "+queue, append(options, trace.WithSpanKind(trace.SpanKindConsumer))...)
	return span
}

// inside returns the headers with the context of a span. It leaves the given
// ones alone: when the hook could not be run, the call is repeated, and must be
// part of the message's trace again.
func inside(span trace.Span, given map[string]any) map[string]any {
	carrier := propagation.MapCarrier{}
	propagator.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	own := make(map[string]any, len(given)+2)
	maps.Copy(own, given)
	delete(own, hooks.TraceStateHeader)
	for name, value := range carrier {
		own[name] = value
	}
	return own
}

// spanBatch makes one span of a batch: a trace of its own, with a link to that
// of each message.
type spanBatch struct {
	spanHook
	batch hooks.BatchHook
}

// HandleBatch implements [hooks.BatchHook].
func (h spanBatch) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	span := h.start(ctx, ms[0].Queue, trace.WithLinks(linksTo(ms)...), trace.WithAttributes(describeBatch(ms)...))
	ms = slices.Clone(ms)
	for i := range ms {
		ms[i].Headers = inside(span, ms[i].Headers)
	}
	outcomes, err := h.batch.HandleBatch(ctx, ms)
	end(span, hooks.Spread(outcomes, len(ms)), err)
	return outcomes, err
}

func linksTo(ms []hooks.Message) (links []trace.Link) {
	for i := range ms {
		ctx := extract(context.Background(), ms[i].Headers)
		if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
			links = append(links, trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{
				attribute.String("messaging.message.id", ms[i].MessageID), attribute.Int("rsctl.attempt", ms[i].Attempt),
			}})
		}
	}
	return links
}

// describeMessage uses the names of OpenTelemetry's conventions for messaging.
func describeMessage(m *hooks.Message) []attribute.KeyValue {
	all := append(describeQueue(m),
		attribute.String("messaging.destination.name", destination(m)),
		attribute.Int("messaging.message.body.size", len(m.Body)),
		attribute.Int("rsctl.attempt", m.Attempt),
	)
	for name, value := range map[string]string{
		"messaging.message.id":                       m.MessageID,
		"messaging.message.conversation_id":          m.CorrelationID,
		"messaging.rabbitmq.destination.routing_key": m.RoutingKey,
	} {
		if value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	return all
}

func describeBatch(ms []hooks.Message) []attribute.KeyValue {
	return append(describeQueue(&ms[0]),
		attribute.String("messaging.destination.name", ms[0].Queue),
		attribute.Int("messaging.batch.message_count", len(ms)))
}

func describeQueue(m *hooks.Message) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "rabbitmq"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("rsctl.queue", m.Queue),
	}
}

// destination is what the conventions call it for a consumer of RabbitMQ:
// exchange, routing key and queue, without what is empty or the same.
func destination(m *hooks.Message) string {
	parts := make([]string, 0, 3)
	if m.Exchange != "" {
		parts = append(parts, m.Exchange)
	}
	if m.RoutingKey != "" && m.RoutingKey != m.Queue {
		parts = append(parts, m.RoutingKey)
	}
	return strings.Join(append(parts, m.Queue), ":")
}

// end says what has come out. A run that does not ack has failed, as it has for
// the log; of a batch, the first such message says why.
func end(span trace.Span, outcomes []hooks.Outcome, err error) {
	defer span.End()
	if err != nil {
		fail(span, "unavailable", err.Error())
		return
	}
	if i := slices.IndexFunc(outcomes, func(o hooks.Outcome) bool { return o.Verdict != hooks.Ack }); i >= 0 {
		fail(span, outcomes[i].Verdict.String(), outcomes[i].Reason)
	}
	if len(outcomes) == 1 {
		span.SetAttributes(attribute.String("rsctl.outcome", outcomes[0].Verdict.String()))
		return
	}
	count := map[string]int{}
	for _, o := range outcomes {
		count[o.Verdict.String()]++
	}
	for word, n := range count {
		span.SetAttributes(attribute.Int("rsctl.outcomes."+word, n))
	}
}

func fail(span trace.Span, kind, reason string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, reason)
}
