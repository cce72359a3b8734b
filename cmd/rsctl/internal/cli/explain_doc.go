package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// explainJSON is the form of "explain --output json"; fields are only ever
// added, and the texts may change.
type explainJSON struct {
	File            string         `json:"file"`
	Broker          string         `json:"broker"` // password masked
	VHost           string         `json:"vhost"`
	DeclareTopology bool           `json:"declare_topology"`
	Queues          []explainQueue `json:"queues"`
}

type explainQueue struct {
	Name        string        `json:"name"`
	At          string        `json:"at"` // file:line:column
	Type        string        `json:"type"`
	MaxAttempts int           `json:"max_attempts,omitempty"`
	DeadLetter  string        `json:"dead_letter,omitempty"`
	Delay       string        `json:"delay,omitempty"`
	Handler     string        `json:"handler,omitempty"`
	Notes       []note        `json:"notes"`
	Outcomes    []outcomeJSON `json:"outcomes"`
	Failures    []failureJSON `json:"failures"`
	Objects     []objectJSON  `json:"objects"`
}

// note is one subject in words.
type note struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

type outcomeJSON struct {
	Outcome string   `json:"outcome"`
	When    string   `json:"when"`
	Effect  string   `json:"effect"` // what becomes of the message
	Steps   []string `json:"steps"`
}

// failureJSON is what ends a delivery when something else than its handler fails.
type failureJSON struct {
	Failure string   `json:"failure"`
	When    string   `json:"when"`
	Effect  string   `json:"effect"` // what becomes of the message
	Steps   []string `json:"steps"`
}

type objectJSON struct {
	Kind     string `json:"kind"` // exchange, queue or binding
	Name     string `json:"name"`
	Role     string `json:"role"`
	External bool   `json:"external,omitempty"` // must exist; never declared
	Settings string `json:"settings"`
}

func explainSpec(s *spec.Spec, queues []*spec.Queue) explainJSON {
	t := topology.Compile(s, topology.Server{})
	doc := explainJSON{
		File: s.File, Broker: s.Broker.String(), VHost: vhostOf(s.Broker.URL.Value),
		DeclareTopology: s.DeclareTopology, Queues: []explainQueue{},
	}
	for _, q := range queues {
		e := explainQueue{
			Name: q.Name, At: at(s.File, q.Pos), Type: string(q.Type),
			MaxAttempts: q.MaxAttempts, DeadLetter: q.DeadLetter,
			Notes: notes(s, q), Outcomes: outcomes(q), Failures: failures(q), Objects: objects(t.For(q.Name)),
		}
		if q.Delay != nil {
			e.Delay = q.Delay.Strategy
		}
		if q.Handler != nil {
			e.Handler = string(q.Handler.Kind)
		}
		doc.Queues = append(doc.Queues, e)
	}
	return doc
}

func vhostOf(url string) string {
	u, err := amqp.ParseURI(url)
	if err != nil {
		return ""
	}
	return u.Vhost
}

// objects lists t in the order of declaration.
func objects(t *topology.Topology) []objectJSON {
	out := []objectJSON{}
	for _, e := range t.Exchanges {
		settings := e.Type + traits(trait{"durable", e.Durable}, trait{"auto-delete", e.AutoDelete}, trait{"internal", e.Internal})
		out = append(out, object("exchange", e.Name, e.Origin.Role, e.External, settings+arguments(e.Arguments)))
	}
	for _, q := range t.Queues {
		settings := string(q.Type) + traits(trait{"durable", q.Durable}, trait{"exclusive", q.Exclusive}, trait{"auto-delete", q.AutoDelete})
		out = append(out, object("queue", q.Name, q.Origin.Role, q.External, settings+arguments(q.Arguments)))
	}
	for _, b := range t.Bindings {
		settings := fmt.Sprintf("routing key %q", b.RoutingKey) + arguments(b.Arguments)
		out = append(out, object("binding", b.Source+" -> "+b.Destination, b.Origin.Role, false, settings))
	}
	return out
}

func object(kind, name string, role topology.Role, external bool, settings string) objectJSON {
	if external {
		settings = "external: must exist"
	}
	return objectJSON{kind, name, string(role), external, settings}
}

// trait is a yes-or-no setting of an object.
type trait struct {
	name string
	on   bool
}

// traits renders the settings that are on: ", durable".
func traits(list ...trait) string {
	var b strings.Builder
	for _, t := range list {
		if t.on {
			b.WriteString(", " + t.name)
		}
	}
	return b.String()
}

// arguments renders a table in a stable order; the queue's type has been said.
func arguments(args map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name == "x-queue-type" {
			continue
		}
		value := fmt.Sprint(args[name])
		if s, ok := args[name].(string); ok {
			value = quote(s)
		}
		b.WriteString(", " + name + "=" + value)
	}
	return b.String()
}
