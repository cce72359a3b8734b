package kinds

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

// A kindUnderTest builds hooks of one kind that behave as conform needs.
type kindUnderTest struct {
	// answers does what the message's body says: "ack", "drop", "retry" or
	// "retry_after 2s".
	answers hooks.Hook
	// hangs never answers by itself.
	hangs hooks.Hook
	// floods writes a lot before it acks.
	floods hooks.Hook
	// babbles answers with something that is no answer, but looks like success.
	babbles hooks.Hook
	// absent cannot be run at all.
	absent hooks.Hook
}

// stuckFor is the deadline of a call that does not end: long enough to connect
// before it on a busy machine.
const stuckFor = 2 * time.Second

// conform holds the promises of [hooks.Hook] that are the same for every kind.
func conform(t *testing.T, k kindUnderTest) {
	t.Run("each of many concurrent calls gets its own answer", func(t *testing.T) {
		t.Parallel()
		conformConcurrent(t, k.answers)
	})
	t.Run("a call returns soon after its deadline and is a failure", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), stuckFor)
		defer cancel()
		o := conformStops(t, ctx, k.hangs)
		wantReason(t, o, "timed out after 30s")
	})
	t.Run("a call returns soon after it is cancelled and says that rsctl stops", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		o := conformStops(t, ctx, k.hangs)
		wantReason(t, o, "interrupted")
	})
	t.Run("a call whose context is done is a failure at once", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		conformStops(t, ctx, k.answers)
	})
	t.Run("an endless answer costs bounded memory", func(t *testing.T) {
		conformFlood(t, k.floods)
	})
	t.Run("an answer that cannot be read is a failure with a reason of one bounded line", func(t *testing.T) {
		t.Parallel()
		o := handleWith(t, k.babbles, hooks.Message{})
		if o.Verdict != hooks.Failed || o.Reason == "" || len(o.Reason) > maxReason || strings.ContainsAny(o.Reason, "\r\n\x1b") {
			t.Errorf("got %+v, want Failed with a printable reason", o)
		}
	})
	t.Run("a handler that is not there is an error, not an outcome", func(t *testing.T) {
		t.Parallel()
		conformAbsent(t, k.absent)
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

func conformFlood(t *testing.T, hook hooks.Hook) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if o := handleWith(t, hook, hooks.Message{}); o.Verdict != hooks.Ack {
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

func TestConformance(t *testing.T) {
	kinds := map[string]func(t *testing.T) kindUnderTest{
		"exec":   execUnderTest,
		"http":   httpUnderTest,
		"worker": workerUnderTest,
	}
	for kind := range registry {
		build, ok := kinds[string(kind)]
		if !ok {
			t.Errorf("kind %s has no conformance test", kind)
			continue
		}
		t.Run(string(kind), func(t *testing.T) { conform(t, build(t)) })
	}
	t.Run("http over TLS", func(t *testing.T) { conform(t, httpsUnderTest(t)) })
}
