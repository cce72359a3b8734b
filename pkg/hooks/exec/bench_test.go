package exec

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// BenchmarkExec runs `true` through the exec hook and through a bare os/exec
// loop, alternately and at the same parallelism, and reports how much of the
// bare loop's speed is left.
func BenchmarkExec(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 512)
	hook, err := New(&spec.Handler{Kind: spec.Exec, Command: []spec.Text{{Value: "true"}}, Dir: b.TempDir(), KillGrace: time.Second}, setup.Options{})
	if err != nil {
		b.Fatal(err)
	}
	bare := func() {
		cmd := exec.Command("true")
		cmd.Stdin = bytes.NewReader(body)
		if err := cmd.Run(); err != nil {
			b.Error(err)
		}
	}
	m := hooks.Message{Queue: "orders", MessageID: "1", Attempt: 1, Body: body, Headers: map[string]any{"tenant": "a"}}
	ours := func() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if o, err := hook.Handle(ctx, m); err != nil || o.Verdict != hooks.Ack {
			b.Error(o, err)
		}
	}
	hooktest.ReportRatio(b, 2*runtime.GOMAXPROCS(0), 50, bare, ours)
}
