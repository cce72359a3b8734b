// Package tracing puts the runs of hooks into the traces of their messages.
//
// A [Tracer] wraps a hook. The hook finds the trace context in the headers of
// its message, under the names of W3C Trace Context; the message itself, and so
// what a retry publishes, is not touched. What is exported, and where to, is
// said by the standard environment variables of OpenTelemetry.
//
// Nothing outside of this package knows OpenTelemetry.
package tracing

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// flushFor bounds what the end of a run waits for a collector.
const flushFor = 3 * time.Second

// A Tracer gives hooks the trace of their message. The zero Tracer exports
// nothing; it only starts a trace for a message that has none.
type Tracer struct {
	disabled bool
	provider *sdktrace.TracerProvider // nil: none is needed
	export   *reporting               // nil: to nowhere
}

// Wrap returns h with the trace context in what it is told. The result is a
// [hooks.BatchHook] when h is one, and implements nothing else.
func (t *Tracer) Wrap(h hooks.Hook) hooks.Hook {
	batch, takesBatches := h.(hooks.BatchHook)
	switch {
	case t.disabled:
		return h
	case t.provider == nil && takesBatches:
		return idBatch{idHook{h}, batch}
	case t.provider == nil:
		return idHook{h}
	}
	one := spanHook{h, t.provider.Tracer("github.com/rsctl/rsctl")}
	if takesBatches {
		return spanBatch{one, batch}
	}
	return one
}

// Close exports what is left, for 3 s at most.
func (t *Tracer) Close() {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && t.export != nil {
		t.export.fail(err)
	}
}

// FromEnvironment reads the variables of OpenTelemetry (OTEL_…). Without any of
// them, nothing is exported. A setting that cannot be used is logged, and traces
// are not exported then: no message may have to wait for its trace.
func FromEnvironment(ctx context.Context, version string, log *slog.Logger) *Tracer {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return &Tracer{disabled: true}
	}
	name := exporterName()
	if name == "none" && os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		return &Tracer{}
	}
	// The library logs by itself otherwise, and shows what it cannot read: a
	// header with a key may be among it.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("a setting of the traces cannot be used", "error", withoutURLs(err))
	}))
	t := &Tracer{}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(describe(ctx, version))}
	switch exporter, err := newExporter(ctx, name); {
	case err != nil:
		log.Warn("traces are not exported", "error", withoutURLs(err))
	case exporter != nil:
		t.export = &reporting{SpanExporter: exporter, log: log}
		options = append(options, sdktrace.WithBatcher(t.export))
	}
	t.provider = sdktrace.NewTracerProvider(options...)
	return t
}

// describe is what is known about this process; the environment overrules it.
func describe(ctx context.Context, version string) *resource.Resource {
	r, _ := resource.New(ctx, // an error leaves out what could not be read
		resource.WithAttributes(attribute.String("service.name", "rsctl"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	return r
}
