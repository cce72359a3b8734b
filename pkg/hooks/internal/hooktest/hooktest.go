// Package hooktest holds what the tests of all kinds of hooks share: handlers as a
// parsed spec would hold them, calls with a deadline, a log that can be read, and
// [Conform], the promises that every kind keeps.
package hooktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Patience bounds a call that ends by itself, on however busy a machine.
const Patience = 3 * time.Minute

// Texts turns plain strings into spec values.
func Texts(values ...string) []spec.Text {
	var out []spec.Text
	for _, v := range values {
		out = append(out, spec.Text{Value: v, Source: v})
	}
	return out
}

// Command is an exec handler.
func Command(t testing.TB, argv ...string) *spec.Handler {
	t.Helper()
	return &spec.Handler{
		Kind: spec.Exec, Command: Texts(argv...), Dir: t.TempDir(),
		Timeout: 30 * time.Second, KillGrace: 5 * time.Second,
	}
}

// Shell is an exec handler that runs a shell script.
func Shell(t testing.TB, script string) *spec.Handler {
	t.Helper()
	return Command(t, "sh", "-c", script)
}

// New builds the hook of h with a constructor of a kind, and closes it at the end
// of the test.
func New(t testing.TB, build func(*spec.Handler, setup.Options) (hooks.Hook, error), h *spec.Handler, o setup.Options) hooks.Hook {
	t.Helper()
	hook, err := build(h, o)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	if c, ok := hook.(hooks.Closer); ok {
		t.Cleanup(func() { c.Close() })
	}
	return hook
}

// Handle runs one message through the hook and fails on an unavailable one.
func Handle(t testing.TB, hook hooks.Hook, m hooks.Message) hooks.Outcome {
	t.Helper()
	o, err := hook.Handle(Deadline(t, Patience), m)
	if err != nil {
		t.Fatalf("Handle() error = %v, want none", err)
	}
	return o
}

// HandleBatch runs a batch through the hook and fails on an unavailable one.
func HandleBatch(t testing.TB, hook hooks.Hook, ms []hooks.Message) []hooks.Outcome {
	t.Helper()
	got, err := hook.(hooks.BatchHook).HandleBatch(Deadline(t, Patience), ms)
	if err != nil {
		t.Fatalf("HandleBatch() error = %v, want none", err)
	}
	return got
}

// Deadline returns a context that ends after d.
func Deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until cond is true.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(began) > Patience {
			t.Errorf("waited %v for %s", Patience, what)
			return
		}
	}
}

// An Overdue context is one whose deadline passes when the test says so, however
// long what comes before it takes.
type Overdue struct{ done chan struct{} }

// NewOverdue returns a context whose deadline has not passed.
func NewOverdue() *Overdue { return &Overdue{make(chan struct{})} }

// Pass lets the deadline pass.
func (o *Overdue) Pass() { close(o.done) }

// Deadline implements [context.Context]: there is none that can be told.
func (o *Overdue) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements [context.Context].
func (o *Overdue) Done() <-chan struct{} { return o.done }

// Value implements [context.Context].
func (o *Overdue) Value(any) any { return nil }

// Err implements [context.Context].
func (o *Overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Three is a batch with a body that is no UTF-8, and attempts that differ.
func Three() []hooks.Message {
	return []hooks.Message{
		{Queue: "rows", RoutingKey: "rows", MessageID: "a", Attempt: 1, MaxAttempts: 5, Body: []byte("one\n\"two\"")},
		{Queue: "rows", RoutingKey: "rows", MessageID: "b", Attempt: 2, MaxAttempts: 5, Redelivered: true, Body: []byte{0xff, 0}},
		{Queue: "rows", RoutingKey: "rows", MessageID: "c", Attempt: 1, MaxAttempts: 5, Headers: map[string]any{"tenant": "x"}},
	}
}

// WantOutcomes fails when got is not want.
func WantOutcomes(t testing.TB, got, want []hooks.Outcome) {
	t.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// WantReason fails when the reason of o lacks one of the parts.
func WantReason(t testing.TB, o hooks.Outcome, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(o.Reason, p) {
			t.Errorf("reason %q does not contain %q", o.Reason, p)
		}
	}
}

// WantUnavailable fails when err does not say that the hook is unavailable, and
// each of the parts.
func WantUnavailable(t testing.TB, what string, err error, parts []string) {
	t.Helper()
	if !errors.Is(err, hooks.ErrUnavailable) {
		t.Errorf("%s = %v, want ErrUnavailable", what, err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s = %q lacks %q", what, err, p)
		}
	}
}

// WriteFile writes an executable file, or another by its mode, and returns its
// path.
func WriteFile(t testing.TB, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// ReadFile returns the content of a file that must be there.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
