package cli

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// outputLine is one line that a hook has printed, escaped.
type outputLine struct {
	Stream string `json:"stream"`
	Line   string `json:"line"`
}

// tryOutput takes a hook's log: lines of its output are kept, and shown as they
// come in text form; the rest is for people, on standard error.
type tryOutput struct {
	slog.Handler
	show func(outputLine)
	got  *lines
}

// lines is shared by the copies of a tryOutput.
type lines struct {
	mu  sync.Mutex
	all []outputLine
}

func (a *app) newTryOutput() *tryOutput {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: readable}
	o := &tryOutput{Handler: slog.NewTextHandler(a.sys.Err, opts), show: func(outputLine) {}, got: &lines{}}
	if a.output.value == "text" {
		c := a.stdout()
		o.show = func(l outputLine) { c.println(c.paint(dim, l.Stream+" |") + " " + safe(l.Line)) }
	}
	return o
}

func (o *tryOutput) logger() *slog.Logger { return slog.New(o) }

// Handle implements [slog.Handler]. A record of output is known by its two
// attributes, whatever else belongs to it.
func (o *tryOutput) Handle(ctx context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(attr slog.Attr) bool {
		attrs[attr.Key] = attr.Value.String()
		return true
	})
	l := outputLine{attrs["stream"], attrs["line"]}
	if l.Stream == "" || l.Line == "" {
		return o.Handler.Handle(ctx, r)
	}
	o.got.mu.Lock()
	defer o.got.mu.Unlock()
	o.got.all = append(o.got.all, l)
	o.show(l)
	return nil
}

// WithAttrs implements [slog.Handler].
func (o *tryOutput) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tryOutput{o.Handler.WithAttrs(attrs), o.show, o.got}
}

// WithGroup implements [slog.Handler].
func (o *tryOutput) WithGroup(name string) slog.Handler {
	return &tryOutput{o.Handler.WithGroup(name), o.show, o.got}
}

func (o *tryOutput) all() []outputLine {
	o.got.mu.Lock()
	defer o.got.mu.Unlock()
	return slices.Clone(o.got.all)
}
