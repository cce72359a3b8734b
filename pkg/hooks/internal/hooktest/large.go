package hooktest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// WantNotCopied fails when handing a large body to a hook takes more than next to
// no memory besides it, whatever is in it. It must not run beside other tests. The
// hooks ack; the second one gets a batch.
func WantNotCopied(t *testing.T, one, batch hooks.Hook) {
	const size = 64 << 20
	body := bytes.Repeat([]byte{1}, size)
	half := []hooks.Message{{Body: body[:size/2]}, {Body: body[size/2:]}}
	for name, call := range map[string]func() hooks.Outcome{
		"one message": func() hooks.Outcome { return Handle(t, one, hooks.Message{Body: body}) },
		"a batch":     func() hooks.Outcome { return HandleBatch(t, batch, half)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			if o := call(); o.Verdict != hooks.Ack {
				t.Fatalf("%+v, want an ack", o)
			}
			if grown := allocated() - before; grown > size/8 {
				t.Errorf("%d bytes were allocated for a body of %d", grown, size)
			}
		})
	}
}

// allocated is how many bytes this process has asked for so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
