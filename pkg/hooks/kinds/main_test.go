package kinds

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestMain(m *testing.M) {
	for name, run := range map[string]func() error{proxiedURL: postOnce, crowdedURL: postCrowded} {
		if os.Getenv(name) == "" {
			continue
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if mode := os.Getenv(limitsMode); mode != "" {
		limited[mode]()
		return
	}
	if mode := os.Getenv(workerMode); mode != "" {
		workAs(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// texts turns plain strings into spec values.
func texts(values ...string) []spec.Text {
	var out []spec.Text
	for _, v := range values {
		out = append(out, spec.Text{Value: v, Source: v})
	}
	return out
}

// execHandler is a handler as a parsed spec would hold it.
func execHandler(t testing.TB, argv ...string) *spec.Handler {
	t.Helper()
	return &spec.Handler{
		Kind: spec.Exec, Command: texts(argv...), Dir: t.TempDir(),
		Timeout: 30 * time.Second, KillGrace: 5 * time.Second,
	}
}

// sh is a handler that runs a shell script.
func sh(t *testing.T, script string) *spec.Handler {
	t.Helper()
	return execHandler(t, "sh", "-c", script)
}

// newHook builds the hook of h.
func newHook(t *testing.T, h *spec.Handler, o Options) hooks.Hook {
	t.Helper()
	hook, err := New(h, o)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	if c, ok := hook.(hooks.Closer); ok {
		t.Cleanup(func() { c.Close() })
	}
	return hook
}

// handle runs one message through the hook and fails on an unavailable one.
func handle(t *testing.T, h *spec.Handler, m hooks.Message) hooks.Outcome {
	t.Helper()
	return handleWith(t, newHook(t, h, Options{}), m)
}

func handleWith(t *testing.T, hook hooks.Hook, m hooks.Message) hooks.Outcome {
	t.Helper()
	o, err := hook.Handle(deadline(t, patience), m)
	if err != nil {
		t.Fatalf("Handle() error = %v, want none", err)
	}
	return o
}

// patience bounds a call that ends by itself, on however busy a machine.
const patience = 3 * time.Minute

// An overdue context is one whose deadline passes when the test says so, however
// long what comes before it takes.
type overdue struct{ done chan struct{} }

func newOverdue() *overdue { return &overdue{make(chan struct{})} }

func (o *overdue) pass()                       { close(o.done) }
func (o *overdue) Deadline() (time.Time, bool) { return time.Time{}, false }
func (o *overdue) Done() <-chan struct{}       { return o.done }
func (o *overdue) Value(any) any               { return nil }

func (o *overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// eventually waits until cond is true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Errorf("waited %v for %s", patience, what)
			return
		}
	}
}

// deadline returns a context that ends after d.
func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// logBuffer collects log records as JSON lines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logged returns Options whose log goes to the buffer.
func logged() (Options, *logBuffer) {
	b := &logBuffer{}
	return Options{Log: slog.New(slog.NewJSONHandler(b, nil)), Queue: "orders"}, b
}

// writeFile writes an executable file, or another by its mode, and returns its
// path.
func writeFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantReason(t *testing.T, o hooks.Outcome, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(o.Reason, p) {
			t.Errorf("reason %q does not contain %q", o.Reason, p)
		}
	}
}
