// Package setup is what the constructors of all kinds of hooks take besides the
// handler of a spec.
package setup

import (
	"log/slog"
	"os"
)

// Options is what the builder of a hook needs besides the handler of a spec. The
// zero value works.
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

// WithDefaults returns o with a value in every field but Queue; dir is the
// handler's own folder.
func (o Options) WithDefaults(dir string) Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dir == "" {
		o.Dir = dir
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Concurrency = max(o.Concurrency, 1)
	return o
}
