package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// Exit codes are part of the interface: scripts depend on them.
const (
	exitOK      = 0 // done, nothing to report
	exitNo      = 1 // the answer is no: errors in the spec, a failed check, conflicts
	exitUsage   = 2 // wrong command line
	exitFailure = 3 // could not finish: broker unreachable or refusing, I/O
)

// usageError marks a mistake on the command line.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
func (e *usageError) Hint() string  { return e.hint }

// usagef returns a usageError whose hint may be empty.
func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// negative is the answer "no". Without a message the findings have already been
// printed and say all there is to say.
type negative struct{ message, hint string }

func (e *negative) Error() string { return e.message }
func (e *negative) Hint() string  { return e.hint }

// errNo is a no whose reasons have been printed.
var errNo error = &negative{}

// failure is anything that kept a command from finishing.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }
func (e *failure) Hint() string  { return e.hint }

// exitCode turns an error into a process status.
func exitCode(err error) int {
	var usage *usageError
	var no *negative
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &no):
		return exitNo
	}
	return exitFailure
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hintOf finds what to do about err, or "".
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		if h := hinted.Hint(); h != "" {
			return h
		}
	}
	var refusal *broker.Refusal
	if errors.As(err, &refusal) {
		return refusal.Hint
	}
	return ""
}

// printError writes "rsctl: text" and the hint on a line of its own.
func printError(c console, text, hint string) {
	var b strings.Builder
	b.WriteString(c.paint(red, "rsctl:") + " " + safe(text) + "\n")
	if hint != "" {
		b.WriteString("  hint: " + safe(hint) + "\n")
	}
	_, _ = io.WriteString(c.w, b.String()) // nobody is left to tell
}
