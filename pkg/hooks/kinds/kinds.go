// Package kinds is the list of the kinds of hooks. [New] builds the hook that a
// spec's handler asks for.
//
// Each kind is a package beside this one, with the name that the spec has for it:
// exec, worker and http. Two of them share their name with a package of the
// standard library; only this package imports them, and it needs neither of those.
// What every kind gets and may answer is written down in docs/hooks.md.
package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/exec"
	"github.com/rsctl/rsctl/pkg/hooks/http"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/hooks/worker"
	"github.com/rsctl/rsctl/pkg/spec"
)

// Options is what a hook needs besides its handler: a log, the name of its queue,
// how many calls are in flight, and what its commands inherit. The zero value works.
type Options = setup.Options

type constructor func(h *spec.Handler, o Options) (hooks.Hook, error)

// registry is the list of kinds. A new kind is one package and one line here.
var registry = map[spec.HandlerKind]constructor{
	spec.Exec:   exec.New,
	spec.HTTP:   http.New,
	spec.Worker: worker.New,
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
	return build(h, o)
}

func kindNames() string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(registry)) {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
