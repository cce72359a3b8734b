package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/tracing/otlp"
)

// exporterName is otlp or none, or something that rsctl has not. The standard
// would export to localhost when nothing is said; a process that nobody has
// asked for traces does not.
func exporterName() string {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	name := os.Getenv("OTEL_TRACES_EXPORTER")
	switch {
	case name == "" && endpoint == "":
		return "none"
	case name == "":
		return "otlp"
	}
	return name
}

// newExporter returns nil for none. It connects to nothing yet.
func newExporter(ctx context.Context, name string) (sdktrace.SpanExporter, error) {
	switch name {
	case "none":
		return nil, nil
	case "otlp":
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; rsctl knows otlp and none", name)
	}
	client, err := otlp.NewClient()
	if err != nil {
		return nil, err
	}
	return otlptrace.New(ctx, client)
}

// reporting logs an exporter's first failure, and that it works again.
type reporting struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements [sdktrace.SpanExporter]. It returns no error, which the
// library would log as well.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.fail(err)
	} else if r.failed.CompareAndSwap(true, false) {
		r.log.Info("traces are exported again")
	}
	return nil
}

func (r *reporting) fail(err error) {
	if r.failed.CompareAndSwap(false, true) {
		r.log.Warn("traces are not exported; messages do not wait for that", "error", withoutURLs(err))
	}
}

var anyURL = regexp.MustCompile(`[a-z]+://[^\s"]+`)

// withoutURLs is an error's text without addresses, which may hold a password
// or a key.
func withoutURLs(err error) string { return anyURL.ReplaceAllString(err.Error(), "(endpoint)") }
