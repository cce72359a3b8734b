package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

type explainFlags struct{ graph choice }

func newExplain(a *app) *cobra.Command {
	f := explainFlags{graph: choice{allowed: []string{"mermaid", "dot"}}}
	cmd := &cobra.Command{
		Use:   "explain [QUEUE]",
		Short: "Say what every outcome of a handler becomes",
		Long: `Say, offline, what the spec means for one queue or for all of them: who counts
attempts, where a spent message goes, where a delayed retry waits, what a crash
does, and as a table what each outcome of a handler becomes on the wire. It is
the table that "rsctl run" settles by. The objects that "rsctl apply" declares
follow.

Values that come from the environment or from files are shown as written in the
spec, never as what they hold.`,
		Example: `  rsctl explain
  rsctl explain orders
  rsctl explain --graph mermaid > topology.mmd
  rsctl explain --graph dot | dot -Tsvg > topology.svg
  rsctl explain orders --output json`,
		Annotations:       map[string]string{formats: "text json"},
		Args:              between(0, 1, "at most one queue"),
		ValidArgsFunction: a.firstQueue,
		RunE:              func(_ *cobra.Command, args []string) error { return explain(a, f, args) },
	}
	cmd.Flags().Var(&f.graph, "graph", "draw the topology instead, in this `language`: mermaid or dot")
	complete(cmd, "graph", f.graph.complete)
	return cmd
}

func explain(a *app, f explainFlags, args []string) error {
	if f.graph.value != "" && a.output.value != "text" {
		return usagef("drop one of them", "--graph and --output %s exclude each other", a.output.value)
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	queues, err := oneOrAll(s, args)
	if err != nil {
		return err
	}
	doc := explainSpec(s, queues)
	switch {
	case f.graph.value != "":
		return a.printGraph(s, queues, f.graph.value)
	case a.output.value == "json":
		return a.json(doc)
	}
	printExplained(a.stdout(), doc)
	return nil
}

// oneOrAll returns the named queue, or all of them.
func oneOrAll(s *spec.Spec, args []string) ([]*spec.Queue, error) {
	var known []string
	var all []*spec.Queue
	for i := range s.Queues {
		known = append(known, s.Queues[i].Name)
		all = append(all, &s.Queues[i])
	}
	if len(args) == 0 {
		return all, nil
	}
	if i := slices.Index(known, args[0]); i >= 0 {
		return all[i : i+1], nil
	}
	return nil, usagef(queueHint(known), "%s has no queue %q%s", s.File, args[0], didYouMean(args[0], known))
}

func printExplained(c console, doc explainJSON) {
	c.printf("broker %s, vhost %q\n", safe(doc.Broker), doc.VHost)
	if doc.DeclareTopology {
		c.println(`topology: "rsctl run" declares what its queues need (declare_topology: true)`)
	} else {
		c.println(`topology: "rsctl run" only verifies that it is there; "rsctl apply" declares it`)
	}
	for _, q := range doc.Queues {
		c.printf("\n%s  %s\n\n", c.paint(bold, "queue "+quote(q.Name)), c.paint(dim, safe(q.At)))
		printNotes(c, q.Notes)
		c.println("")
		printOutcomes(c, q.Outcomes)
		c.println("")
		printFailures(c, q.Failures)
		printObjects(c, q.Objects)
	}
}

// printNotes puts the subjects in a column of their own.
func printNotes(c console, notes []note) {
	width := 0
	for _, n := range notes {
		width = max(width, len(n.Subject))
	}
	for _, n := range notes {
		label := "  " + n.Subject + strings.Repeat(" ", width-len(n.Subject)+2)
		text := wrap(label, safe(n.Text), c.width)
		c.println("  " + c.paint(cyan, n.Subject) + text[2+len(n.Subject):])
	}
}

// printOutcomes writes one line a step, so that the order is plain to see.
func printOutcomes(c console, rows []outcomeJSON) {
	t := table{head: []string{"OUTCOME", "WHEN", "THE MESSAGE", "ON THE WIRE"}}
	for _, r := range rows {
		for i, step := range r.Steps {
			if i == 0 {
				t.row(r.Outcome, r.When, r.Effect, step)
			} else {
				t.row("", "", "", "then "+step)
			}
		}
	}
	t.print(c, "  ")
}

func printFailures(c console, rows []failureJSON) {
	if len(rows) == 0 {
		return
	}
	t := table{head: []string{"WHEN THIS FAILS", "WHEN", "THE MESSAGE", "ON THE WIRE"}}
	for i, r := range rows {
		failure := r.Failure
		if i > 0 && rows[i-1].Failure == failure {
			failure = ""
		}
		t.row(failure, r.When, r.Effect, strings.Join(r.Steps, ", then "))
	}
	t.print(c, "  ")
	c.println("")
}

func printObjects(c console, objects []objectJSON) {
	t := table{head: []string{"OBJECT", "ROLE", "DECLARED AS"}}
	for len(objects) > 0 {
		n := ladderRun(objects)
		if o := objects[0]; n > 1 {
			what := fmt.Sprintf("%s, the last is %q", plural(n, o.Kind), objects[n-1].Name)
			t.row(o.Kind+" "+quote(o.Name)+" …", o.Role, what)
		} else {
			t.row(o.Kind+" "+quote(o.Name), o.Role, o.Settings)
		}
		objects = objects[n:]
	}
	t.print(c, "  ")
}

// ladderRun counts the objects at the start that are shown as one line: the
// delay ladder has dozens, all alike. Of other objects it is 1.
func ladderRun(objects []objectJSON) int {
	n := 1
	for n < len(objects) && objects[0].Role == string(topology.RoleLadder) &&
		objects[n].Role == objects[0].Role && objects[n].Kind == objects[0].Kind {
		n++
	}
	return n
}
