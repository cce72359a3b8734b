package tracing

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// idHook is a hook whose messages have a trace, a new one if need be.
type idHook struct{ hook hooks.Hook }

// Handle implements [hooks.Hook].
func (h idHook) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	m.Headers = withParent(m.Headers, "")
	return h.hook.Handle(ctx, m)
}

type idBatch struct {
	idHook
	batch hooks.BatchHook
}

// HandleBatch implements [hooks.BatchHook]. What has no trace starts one
// together.
func (h idBatch) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	started := newParent()
	for i := range ms {
		ms[i].Headers = withParent(ms[i].Headers, started)
	}
	return h.batch.HandleBatch(ctx, ms)
}

// withParent adds a trace to headers that have none: the started one or, when it
// is "", a new one. They belong to the call: a copy of them for each would cost
// more than all the rest.
func withParent(headers map[string]any, started string) map[string]any {
	if parent, _ := hooks.TraceContext(headers); parent != "" {
		return headers
	}
	if headers == nil {
		headers = make(map[string]any, 1)
	}
	if started == "" {
		started = newParent()
	}
	headers[hooks.TraceParentHeader] = started
	delete(headers, hooks.TraceStateHeader) // it belonged to what could not be read
	return headers
}

// newParent is the context of a new trace. Its flag says "sampled", which is
// what the samplers of OpenTelemetry say unless they are told otherwise: with
// the other value a handler would, by its own default, record nothing.
func newParent() string {
	var id [24]byte
	binary.BigEndian.PutUint64(id[:], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) // all zeros is no id
	binary.BigEndian.PutUint64(id[16:], rand.Uint64()|1)
	text := hex.AppendEncode(append(make([]byte, 0, 64), "00-"...), id[:16])
	text = hex.AppendEncode(append(text, '-'), id[16:])
	return string(append(text, "-01"...))
}
