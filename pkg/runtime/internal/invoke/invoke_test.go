package invoke

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// batch is a hook of one message and of several.
type batch struct{ hooks.Func }

func (b batch) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	o, err := b.Func(ctx, ms[0])
	return []hooks.Outcome{o}, err
}

// calls are a call with one message and one with a batch.
var calls = map[string]func(*Caller, context.Context) (hooks.Outcome, error){
	"one": func(c *Caller, ctx context.Context) (hooks.Outcome, error) {
		return c.One(ctx, hooks.Message{MessageID: "m-1"})
	},
	"a batch": func(c *Caller, ctx context.Context) (hooks.Outcome, error) {
		each, err := c.Batch(ctx, []hooks.Message{{MessageID: "m-1"}, {MessageID: "m-2"}})
		if err != nil {
			return hooks.Outcome{}, err
		}
		return each[0], nil
	},
}

func TestCallerPassesOnWhatTheHookAnswers(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, call := range calls {
		for _, want := range []error{nil, broken} {
			c := &Caller{Hook: batch{func(context.Context, hooks.Message) (hooks.Outcome, error) {
				return hooks.Outcome{Verdict: hooks.Drop}, want
			}}}
			if o, err := call(c, t.Context()); err != want || (err == nil && o.Verdict != hooks.Drop) {
				t.Errorf("%s: got %v, %v; want drop, %v", name, o, err, want)
			}
		}
	}
}

func TestCallerEndsACallThatTakesTooLong(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		c := &Caller{Timeout: time.Millisecond, Hook: batch{func(ctx context.Context, _ hooks.Message) (hooks.Outcome, error) {
			<-ctx.Done()
			return hooks.Outcome{}, ctx.Err()
		}}}
		if _, err := call(c, t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want the deadline", name, err)
		}
	}
}

func TestCallerMakesAnErrorOfAPanic(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		var log bytes.Buffer
		c := &Caller{Log: slog.New(slog.NewTextHandler(&log, nil)), Hook: batch{func(context.Context, hooks.Message) (hooks.Outcome, error) {
			panic("index out of range")
		}}}
		o, err := call(c, t.Context())
		if !errors.Is(err, ErrPanicked) || err.Error() != "the handler panicked: index out of range" || o.Verdict != hooks.Failed {
			t.Errorf("%s: got %v, %v", name, o, err)
		}
		if n := strings.Count(log.String(), "msg="); n != 1 || !strings.Contains(log.String(), "message_id=m-1") || !strings.Contains(log.String(), "invoke_test.go") {
			t.Errorf("%s: the log does not tell of it once, with its message and its place: %s", name, &log)
		}
	}
}

// Not parallel: it measures allocations.
func TestCallerCostsNoAllocation(t *testing.T) {
	c := &Caller{Hook: hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) { return hooks.Outcome{}, nil })}
	m, ctx := hooks.Message{}, t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = c.One(ctx, m) }); n != 0 {
		t.Errorf("%v allocations for a call, want none", n)
	}
}
