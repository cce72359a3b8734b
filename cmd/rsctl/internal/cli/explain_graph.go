package cli

import (
	"fmt"
	"strings"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// graph is a drawing of a topology, independent of the language it is drawn in.
type graph struct {
	nodes []node
	edges []edge
	ids   map[string]string // "queue orders" to the node's id
}

type node struct{ id, label, shape string }

type edge struct {
	from, to, label string
	dashed          bool
}

// The shapes of nodes.
const (
	shapeExchange = "exchange"
	shapeQueue    = "queue"
	shapeHandler  = "handler"
)

func (a *app) printGraph(s *spec.Spec, queues []*spec.Queue, language string) error {
	t := topology.Compile(s, topology.Server{})
	if len(queues) < len(s.Queues) {
		t = t.For(namesOf(queues)...)
	}
	g := draw(t, queues)
	text := g.mermaid()
	if language == "dot" {
		text = g.dot()
	}
	a.stdout().printf("%s", text)
	return nil
}

func draw(t *topology.Topology, queues []*spec.Queue) *graph {
	g := &graph{ids: map[string]string{}}
	for _, e := range t.Exchanges {
		g.node("exchange", e.Name, e.Name+"\n"+e.Type+" exchange", shapeExchange)
	}
	for _, q := range t.Queues {
		g.node("queue", q.Name, q.Name+"\n"+strings.TrimSpace(string(q.Type)+" "+string(q.Origin.Role)), shapeQueue)
	}
	for _, b := range t.Bindings {
		to := "queue"
		if b.ToExchange {
			to = "exchange"
		}
		g.edge(edge{from: "exchange " + b.Source, to: to + " " + b.Destination, label: b.RoutingKey})
	}
	for _, q := range t.Queues {
		g.deadLetters(q)
	}
	for _, q := range queues {
		g.copies(q)
	}
	return g
}

func (g *graph) node(kind, name, label, shape string) {
	id := fmt.Sprintf("n%d", len(g.nodes)+1)
	g.nodes = append(g.nodes, node{id, label, shape})
	g.ids[kind+" "+name] = id
}

// edge adds e when both of its ends are drawn.
func (g *graph) edge(e edge) {
	from, to := g.ids[e.from], g.ids[e.to]
	if from == "" || to == "" {
		return
	}
	e.from, e.to = from, to
	g.edges = append(g.edges, e)
}

// deadLetters draws what the server moves by a queue's own arguments.
func (g *graph) deadLetters(q topology.Queue) {
	exchange, ok := q.Arguments["x-dead-letter-exchange"].(string)
	if !ok {
		return
	}
	key, _ := q.Arguments["x-dead-letter-routing-key"].(string)
	e := edge{from: "queue " + q.Name, to: "exchange " + exchange, label: "dead letter " + key, dashed: true}
	if exchange == "" {
		e.to, e.label = "queue "+key, "dead letter"
	}
	if q.Origin.Role == topology.RoleWaiting {
		e.label = "after the delay"
	}
	g.edge(e)
}

// copies draws the handler and what rsctl itself publishes.
func (g *graph) copies(q *spec.Queue) {
	queue := "queue " + q.Name
	if q.Handler != nil {
		g.node("handler", q.Name, string(q.Handler.Kind)+" handler", shapeHandler)
		g.edge(edge{from: queue, to: "handler " + q.Name, label: fmt.Sprintf("%d at a time", q.Concurrency)})
	}
	drawn := map[settle.Target]bool{}
	for _, row := range settle.Table(topology.Policy(q)) {
		for _, s := range row.Steps {
			if c, ok := s.(settle.Copy); ok && !drawn[targetKey(c.To)] {
				drawn[targetKey(c.To)] = true
				g.edge(copyEdge(queue, c))
			}
		}
	}
}

func targetKey(t settle.Target) settle.Target {
	return settle.Target{Exchange: t.Exchange, Key: t.Key, Queue: t.Queue}
}

var copyLabels = map[settle.Purpose]string{
	settle.ForRetry: "retry copy", settle.ForDelay: "delayed copy", settle.ForDeadLetter: "spent",
}

func copyEdge(from string, c settle.Copy) edge {
	e := edge{from: from, to: "queue " + c.To.Queue, label: copyLabels[c.Purpose], dashed: true}
	if c.To.Exchange != "" {
		e.to = "exchange " + c.To.Exchange
	}
	return e
}

var mermaidShapes = map[string][2]string{
	shapeExchange: {"{{", "}}"}, shapeQueue: {"[", "]"}, shapeHandler: {"([", "])"},
}

func (g *graph) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, n := range g.nodes {
		s := mermaidShapes[n.shape]
		fmt.Fprintf(&b, "  %s%s\"%s\"%s\n", n.id, s[0], mermaidText(n.label), s[1])
	}
	for _, e := range g.edges {
		arrow := "-->"
		if e.dashed {
			arrow = "-.->"
		}
		label := ""
		if e.label != "" {
			label = `|"` + mermaidText(e.label) + `"|`
		}
		fmt.Fprintf(&b, "  %s %s%s %s\n", e.from, arrow, label, e.to)
	}
	return b.String()
}

func mermaidText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;").Replace(safe(l))
	}
	return strings.Join(lines, "<br/>")
}

var dotShapes = map[string]string{shapeExchange: "hexagon", shapeQueue: "box", shapeHandler: "oval"}

func (g *graph) dot() string {
	var b strings.Builder
	b.WriteString("digraph rsctl {\n  rankdir=LR;\n")
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "  %s [label=%s shape=%s];\n", n.id, dotText(n.label), dotShapes[n.shape])
	}
	for _, e := range g.edges {
		style := ""
		if e.dashed {
			style = " style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", e.from, e.to, dotText(e.label), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(safe(s)) + `"`
}
