// Command rooms measures how the files of each package hang together, and fails
// where that has become worse than its limits say.
//
// A cycle is a set of files of one package each of which uses names of another of
// them, directly or by way of others: none of them can be understood, or moved,
// alone. The command also holds the length of functions and files, and how many
// methods a type has.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// bounds are what a package may be at most.
type bounds struct {
	cycle   int // files in the largest cycle
	methods int // of one type
}

const (
	functionLines = 60
	fileLines     = 400
)

// usual holds where limits has no entry.
var usual = bounds{cycle: 8, methods: 30}

// limits are the packages that may be more, each with the reason. It is best empty.
var limits = map[string]bounds{}

var errWorse = errors.New("the packages above have become worse; move the boundary, or lower what it needs")

func main() {
	all := flag.Bool("all", false, "print every package, not only those over their bounds")
	flag.Parse()
	if err := run(*all); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

func run(all bool) error {
	measured, err := load("./...")
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	worse := false
	for _, m := range measured {
		problems := m.over(limitOf(m.path))
		worse = worse || len(problems) > 0
		if all || len(problems) > 0 {
			fmt.Fprintf(out, "%s\t%d files\t%d in a cycle\t%d methods of %s\t%s\n",
				m.path, m.files, len(m.cycle), m.methods, m.largest, strings.Join(problems, "; "))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if worse {
		return errWorse
	}
	return nil
}

// limitOf returns the bounds of a package, by its path within the module.
func limitOf(path string) bounds {
	if b, ok := limits[path]; ok {
		return b
	}
	return usual
}

// over says in what a package goes beyond its bounds.
func (m measure) over(b bounds) []string {
	problems := slices.Clone(m.long)
	if n := len(m.cycle); n > b.cycle {
		problems = append(problems, fmt.Sprintf("%d files in a cycle, at most %d may be: %s", n, b.cycle, strings.Join(m.cycle, " ")))
	}
	if m.methods > b.methods {
		problems = append(problems, fmt.Sprintf("%s has %d methods, at most %d may be", m.largest, m.methods, b.methods))
	}
	return problems
}
