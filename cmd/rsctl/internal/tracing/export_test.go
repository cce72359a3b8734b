package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// moods is an exporter that fails as often as it is told to.
type moods struct {
	*tracetest.NoopExporter
	errs []error
}

func (m *moods) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	err := m.errs[0]
	m.errs = m.errs[1:]
	return err
}

func TestExporter_OutageIsLoggedOnceAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	down := errors.New(`failed to send to https://user:hush@collector.example/v1/traces?key=hush: Post "https://collector.example/hush": connection refused`)
	r := &reporting{SpanExporter: &moods{errs: []error{down, down, down, nil, nil, down}}, log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 6 {
		if err := r.ExportSpans(t.Context(), nil); err != nil {
			t.Errorf("the library is told %v, and would log it", err)
		}
	}
	text := log.String()
	if strings.Count(text, "not exported") != 2 || strings.Count(text, "exported again") != 1 || strings.Count(text, "connection refused") != 2 || strings.Contains(text, "hush") {
		t.Errorf("log:\n%s", text)
	}
}

// A counter is an exporter that counts spans.
type counter struct {
	*tracetest.NoopExporter
	spans int
}

func (c *counter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.spans += len(spans)
	return nil
}

func TestTracer_CloseExportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	var c counter
	tracer := &Tracer{provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(&c, sdktrace.WithBatchTimeout(time.Hour)))}
	h := tracer.Wrap(&recorder{outcomes: []hooks.Outcome{{Verdict: hooks.Ack}}})
	for range 3 {
		h.Handle(t.Context(), hooks.Message{Queue: "q"})
	}
	tracer.Close()
	if c.spans != 3 {
		t.Errorf("%d spans were exported, want 3", c.spans)
	}
}

// It changes the environment of the process, and so runs alone.
func TestFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name          string
		env           map[string]string
		disabled, sdk bool
		warning       string
	}{
		{"nothing is said", nil, false, false, ""},
		{"an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false, true, ""},
		{"an endpoint for traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/x"}, false, true, ""},
		{"an exporter", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, false, true, ""},
		{"gRPC", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, true, "rsctl knows http/protobuf alone: set it to that"},
		{"no exporter", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false, false, ""},
		{"a sampler alone", map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, false, true, ""},
		{"all is off", map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "otlp"}, true, false, ""},
		{"an exporter that is not there", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, true, "rsctl knows otlp and none"},
		{"a protocol that is not there", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, false, true, "rsctl knows http/protobuf alone"},
		{"a sampler that is none", map[string]string{"OTEL_TRACES_SAMPLER": "often"}, false, true, "cannot be used"},
		{"headers that cannot be read", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "hush"}, false, true, "OTEL_EXPORTER_OTLP_HEADERS is not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, v := range os.Environ() { // of who runs the tests
				if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
					t.Setenv(name, "")
				}
			}
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			var log bytes.Buffer
			tracer := FromEnvironment(t.Context(), "1.0", slog.New(slog.NewTextHandler(&log, nil)))
			tracer.Close()
			if tracer.disabled != tt.disabled || (tracer.provider != nil) != tt.sdk {
				t.Errorf("disabled %t, with spans %t", tracer.disabled, tracer.provider != nil)
			}
			if text := log.String(); !strings.Contains(text, tt.warning) || tt.warning == "" && text != "" || strings.Contains(text, "hush") {
				t.Errorf("log %q, want %q", text, tt.warning)
			}
		})
	}
}
