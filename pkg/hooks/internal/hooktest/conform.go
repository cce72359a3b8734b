package hooktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// A Kind holds hooks of one kind that behave as [Conform] needs.
type Kind struct {
	// Answers does what the message's body says: "ack", "drop", "retry" or
	// "retry_after 2s".
	Answers hooks.Hook
	// Hangs never answers by itself.
	Hangs hooks.Hook
	// Floods writes a lot before it acks.
	Floods hooks.Hook
	// Babbles answers with something that is no answer, but looks like success.
	Babbles hooks.Hook
	// Absent cannot be run at all.
	Absent hooks.Hook
}

// StuckFor is the deadline of a call that does not end: long enough to connect
// before it on a busy machine.
const StuckFor = 2 * time.Second

// maxReason bounds a reason: x-rsctl-error on a dead-letter copy holds 1 KiB.
const maxReason = 1 << 10

// Conform holds the promises of [hooks.Hook] that are the same for every kind.
func Conform(t *testing.T, k Kind) {
	t.Run("each of many concurrent calls gets its own answer", func(t *testing.T) {
		t.Parallel()
		conformConcurrent(t, k.Answers)
	})
	t.Run("a call returns soon after its deadline and is a failure", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), StuckFor)
		defer cancel()
		o := conformStops(t, ctx, k.Hangs)
		WantReason(t, o, "timed out after 30s")
	})
	t.Run("a call returns soon after it is cancelled and says that rsctl stops", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		o := conformStops(t, ctx, k.Hangs)
		WantReason(t, o, "interrupted")
	})
	t.Run("a call whose context is done is a failure at once", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		conformStops(t, ctx, k.Answers)
	})
	t.Run("an endless answer costs bounded memory", func(t *testing.T) {
		WantBounded(t, k.Floods)
	})
	t.Run("an answer that cannot be read is a failure with a reason of one bounded line", func(t *testing.T) {
		t.Parallel()
		o := Handle(t, k.Babbles, hooks.Message{})
		if o.Verdict != hooks.Failed || o.Reason == "" || len(o.Reason) > maxReason || strings.ContainsAny(o.Reason, "\r\n\x1b") {
			t.Errorf("got %+v, want Failed with a printable reason", o)
		}
	})
	t.Run("a handler that is not there is an error, not an outcome", func(t *testing.T) {
		t.Parallel()
		conformAbsent(t, k.Absent)
	})
}

func conformConcurrent(t *testing.T, hook hooks.Hook) {
	want := map[string]hooks.Outcome{
		"ack":            {Verdict: hooks.Ack},
		"drop":           {Verdict: hooks.Drop},
		"retry":          {Verdict: hooks.Retry},
		"retry_after 2s": {Verdict: hooks.RetryAfter, Delay: 2 * time.Second},
	}
	var calls sync.WaitGroup
	for body, o := range want {
		for i := range 8 {
			calls.Go(func() {
				got, err := hook.Handle(t.Context(), hooks.Message{MessageID: fmt.Sprint(i), Body: []byte(body)})
				if err != nil || got.Verdict != o.Verdict || got.Delay != o.Delay {
					t.Errorf("%q: got %+v, %v, want %+v", body, got, err, o)
				}
			})
		}
	}
	calls.Wait()
}

func conformStops(t *testing.T, ctx context.Context, hook hooks.Hook) hooks.Outcome {
	t.Helper()
	start := time.Now()
	o, err := hook.Handle(ctx, hooks.Message{Body: []byte("ack")})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("Handle() took %v", took)
	}
	if err != nil || o.Verdict != hooks.Failed || o.Reason == "" {
		t.Errorf("got %+v, %v, want Failed with a reason", o, err)
	}
	return o
}

// WantBounded runs a hook that floods, and fails when that costs much memory.
func WantBounded(t *testing.T, hook hooks.Hook) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if o := Handle(t, hook, hooks.Message{}); o.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack", o)
	}
	runtime.ReadMemStats(&after)
	// Every byte allocated counts, collected or not.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
}

func conformAbsent(t *testing.T, hook hooks.Hook) {
	o, err := hook.Handle(t.Context(), hooks.Message{})
	if !errors.Is(err, hooks.ErrUnavailable) {
		t.Errorf("Handle() error = %v, want one that is ErrUnavailable", err)
	}
	if o.Verdict != hooks.Failed {
		t.Errorf("Handle() outcome = %+v, want none", o)
	}
	var u *hooks.UnavailableError
	if !errors.As(err, &u) || u.Target == "" {
		t.Errorf("Handle() error = %#v names no target", err)
	}
}
