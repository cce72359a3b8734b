// Package broker declares and checks a compiled topology on a real RabbitMQ. It
// is the only topology code that uses the network.
package broker

import (
	"context"
	"log/slog"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// Dial opens one AMQP connection as b says; name is shown in the management UI
// behind the spec's connection_name. The error is one line for people, never
// holds a password, and unwraps to a [*Refusal] when trying again is useless.
func Dial(ctx context.Context, b spec.Broker, name string) (*amqp.Connection, error) {
	panic("TODO helper")
}

// A Refusal is an answer of the server that will not change by trying again: a
// missing vhost, a wrong password, a missing permission.
type Refusal struct {
	Code    int // AMQP reply code, 0 when there is none
	Message string
	Hint    string
}

func (r *Refusal) Error() string { return r.Message }

// Server reads the server's version from the connection.
func Server(conn *amqp.Connection) topology.Server { panic("TODO helper") }

// State is what was found out about one object.
type State string

// The states of a Finding.
const (
	OK          State = "ok"
	Created     State = "created" // apply
	Missing     State = "missing"
	Conflict    State = "conflict" // exists with other settings
	Refused     State = "refused"  // permission, locked, unknown exchange type
	NotVerified State = "not verified"
	Warned      State = "warning" // usable, but a message may be lost
	Skipped     State = "skipped" // not tried, because something it needs failed
)

// Finding is the result for one object, for a report.
type Finding struct {
	Kind   string // exchange, queue, binding
	Name   string
	Origin topology.Origin
	State  State
	Detail string // one line: have/want, or the server's reason in words
	Hint   string // what to do; may be empty
}

// Report is the result of Apply, Check or Verify, in the order of the topology.
type Report struct{ Findings []Finding }

// Failed reports whether a finding is Missing, Conflict, Refused or Skipped.
func (r *Report) Failed() bool { panic("TODO helper") }

// Apply declares t. Every object is tried whatever happened to the others; the
// error is for what ends the whole attempt (the connection, the context).
func Apply(ctx context.Context, conn *amqp.Connection, t *topology.Topology, log *slog.Logger) (*Report, error) {
	panic("TODO helper")
}

// Check looks whether t is there and changes nothing. mgmt may be nil; then
// what only the management API shows is NotVerified.
func Check(ctx context.Context, conn *amqp.Connection, mgmt *Management, t *topology.Topology) (*Report, error) {
	panic("TODO helper")
}

// Management reads arguments, bindings and policies through the management API.
type Management struct{}
