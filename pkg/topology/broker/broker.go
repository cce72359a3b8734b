// Package broker declares and checks a compiled topology on a real RabbitMQ. It
// is the only topology code that uses the network.
//
// [Dial] opens a connection, [Open] a [Session] on one of its own, [On] a
// Session on one that somebody else owns. [Apply] declares, [Check] proves for
// CI that everything is there, [Verify] is the quick look before consuming, and
// [Prove] finds out whether copies would arrive. All four answer with a [Report];
// their error is only for what ends the whole attempt: the connection, the context.
package broker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rsctl/rsctl/pkg/topology"
)

// State is what was found out about one object.
type State string

// The states of a Finding.
const (
	OK          State = "ok"
	Created     State = "created" // apply
	Missing     State = "missing"
	Conflict    State = "conflict" // exists with other settings
	Refused     State = "refused"  // permission, locked, unknown exchange type, server too old
	NotVerified State = "not verified"
	Warned      State = "warning" // usable, but a message may be lost
	Skipped     State = "skipped" // not tried, because something it needs failed
)

// Finding is the result for one object, for a report.
type Finding struct {
	Kind   string // exchange, queue, binding, permission, consumer timeout, management API
	Name   string
	Origin topology.Origin
	State  State
	Detail string // one line: have/want, or the server's reason in words
	Hint   string // what to do; may be empty
	Code   int    // the server's reply code behind State; 0: none
}

// failed reports whether the object cannot be relied on.
func (f Finding) failed() bool {
	switch f.State {
	case Missing, Conflict, Refused, Skipped:
		return true
	}
	return false
}

// String renders `queue "orders": conflict: is quorum, want classic`.
func (f Finding) String() string {
	s := fmt.Sprintf("%s %q: %s", f.Kind, f.Name, f.State)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Report is the result of Apply, Check or Verify, in the order of the topology.
// The same broker and topology give the same report.
type Report struct{ Findings []Finding }

// Failed reports whether a finding is Missing, Conflict, Refused or Skipped.
func (r *Report) Failed() bool { return slices.ContainsFunc(r.Findings, Finding.failed) }

// Err is nil when nothing failed; otherwise one line that names every failed
// object. It is a [*Refusal], except when all that is wrong are queues locked by
// another connection, which is a [*LockedError]: those are worth another try.
func (r *Report) Err() error {
	var texts []string
	var hint string
	locked := true
	for _, f := range r.Findings {
		if !f.failed() || f.State == Skipped {
			continue
		}
		texts = append(texts, f.String())
		locked = locked && f.Code == codeLocked
		if hint == "" {
			hint = f.Hint
		}
	}
	text := strings.Join(texts, "; ")
	switch {
	case len(texts) == 0:
		return nil
	case locked:
		return &LockedError{Message: text}
	}
	return &Refusal{Message: text, Hint: hint}
}

// LockedError says that queues cannot be had now: another connection holds them
// exclusively (405), and they are free when it closes.
type LockedError struct{ Message string }

func (e *LockedError) Error() string { return e.Message }

// Reply codes of AMQP 0-9-1 that mean something here.
const (
	codeAccessRefused  = 403
	codeNotFound       = 404
	codeLocked         = 405
	codePrecondition   = 406
	codeCommandInvalid = 503
	codeNotAllowed     = 530
)
