package exec

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newHook builds the hook of h.
func newHook(t testing.TB, h *spec.Handler, o setup.Options) hooks.Hook {
	t.Helper()
	return hooktest.New(t, New, h, o)
}

// handle runs one message through the hook of h and fails on an unavailable one.
func handle(t testing.TB, h *spec.Handler, m hooks.Message) hooks.Outcome {
	t.Helper()
	return hooktest.Handle(t, newHook(t, h, setup.Options{}), m)
}
