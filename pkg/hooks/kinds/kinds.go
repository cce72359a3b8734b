// Package kinds holds the kinds of hooks: what package hooks describes, as
// running code. [New] builds the hook that a spec's handler asks for.
//
// A kind is one constructor in the registry. What every kind gets and may
// answer is written down in docs/hooks.md; answers are read by one parser
// (answer.go) and metadata is rendered by one function (metadata.go), so that
// two kinds never differ in what a word means.
package kinds

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Options is what a hook needs besides its handler. The zero value works.
type Options struct {
	// Log receives what a hook prints and what had to be left out. Nil: nothing
	// is logged.
	Log *slog.Logger
	// Queue is the queue that the hook serves, for log records.
	Queue string
	// Concurrency is how many calls are in flight at most; it sizes connection
	// pools. Values below 1 count as 1.
	Concurrency int
	// Dir is the folder of the spec file: relative commands are looked for
	// there. Empty: the handler's own folder.
	Dir string
	// Env is the environment that commands inherit, as "NAME=value". Nil: the
	// environment of this process.
	Env []string
}

func (o Options) withDefaults(h *spec.Handler) Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dir == "" {
		o.Dir = h.Dir
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Concurrency = max(o.Concurrency, 1)
	return o
}

type constructor func(h *spec.Handler, o Options) (hooks.Hook, error)

// registry is the list of kinds. A new kind is one file and one line here.
var registry = map[spec.HandlerKind]constructor{
	spec.Exec:   newExec,
	spec.HTTP:   newHTTP,
	spec.Worker: newWorker,
}

// New builds the hook that h describes. It starts nothing and contacts nothing;
// a hook that can tell whether it would run implements [hooks.Checker], and one
// that holds connections or processes implements [hooks.Closer].
//
// The deadline of a call is that of the context given to Handle; h.Timeout is
// only named in messages.
func New(h *spec.Handler, o Options) (hooks.Hook, error) {
	build, ok := registry[h.Kind]
	if !ok {
		return nil, fmt.Errorf("handler kind %q is not supported by this version of rsctl; it knows %s", h.Kind, kindNames())
	}
	return build(h, o.withDefaults(h))
}

func kindNames() string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(registry)) {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
