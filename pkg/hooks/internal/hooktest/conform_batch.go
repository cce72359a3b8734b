package hooktest

import (
	"context"
	"errors"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// ConformBatch holds the promises of [hooks.BatchHook] that are the same for every
// kind.
func ConformBatch(t *testing.T, k Kind) {
	t.Run("a call returns soon after its deadline and fails every message", func(t *testing.T) {
		t.Parallel()
		wantAllFailed(t, k.Hangs, Deadline(t, StuckFor), "timed out after 30s")
	})
	t.Run("a call whose context is done fails every message at once", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantAllFailed(t, k.Answers, ctx, "interrupted")
	})
	t.Run("an answer that cannot be read fails every message", func(t *testing.T) {
		t.Parallel()
		wantAllFailed(t, k.Babbles, Deadline(t, Patience), "")
	})
	t.Run("an endless answer comes to an end", func(t *testing.T) {
		t.Parallel()
		if got := HandleBatch(t, k.Floods, Three()); len(got) != 3 {
			t.Errorf("got %+v, want one outcome per message", got)
		}
	})
	t.Run("a handler that is not there is an error, not an outcome", func(t *testing.T) {
		t.Parallel()
		got, err := k.Absent.(hooks.BatchHook).HandleBatch(Deadline(t, Patience), Three())
		if got != nil || !errors.Is(err, hooks.ErrUnavailable) {
			t.Errorf("got %+v, %v, want ErrUnavailable", got, err)
		}
	})
}

func wantAllFailed(t *testing.T, hook hooks.Hook, ctx context.Context, reason string) {
	t.Helper()
	got, err := hook.(hooks.BatchHook).HandleBatch(ctx, Three())
	if err != nil || len(got) != 3 {
		t.Fatalf("got %+v, %v, want one outcome per message", got, err)
	}
	for _, o := range got {
		if o.Verdict != hooks.Failed || o.Reason == "" {
			t.Errorf("got %+v, want Failed with a reason", o)
		}
		WantReason(t, o, reason)
	}
}
