// Package cli is the command line of rsctl: flags, streams, tables and exit
// codes. What the commands do is in the packages under pkg.
//
// A command is one file with a constructor, a private struct of its flags and a
// plain function that RunE calls. It returns an error and never prints one or
// exits: [Main] does both, in one place.
package cli

import (
	"context"
)

// Main runs one command line, args without the program's name, and returns the
// exit code: see the constants.
func Main(args []string, sys IO) int {
	out := &stickyWriter{w: sys.Out}
	a := &app{sys: IO{In: sys.In, Out: out, Err: sys.Err}, tty: terminals(sys)}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = out.failure()
	}
	return a.finish(err)
}

// finish is the one place that prints an error and picks the exit code.
func (a *app) finish(err error) int {
	code := exitCode(err)
	text := errorText(err)
	switch {
	case a.log != nil:
		if text != "" {
			a.log.fail(a.stderr(), text, hintOf(err))
		}
		a.log.close()
	case text != "":
		printError(a.stderr(), text, hintOf(err))
	}
	return code
}
