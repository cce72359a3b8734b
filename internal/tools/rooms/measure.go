package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// measure is what is measured of a package, its tests left out.
type measure struct {
	path    string // within the module
	files   int
	cycle   []string // the files of the largest cycle
	methods int      // the most that a type has
	largest string   // that type
	long    []string // functions and files that are too long
}

func load(pattern string) ([]measure, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}, pattern)
	if err != nil {
		return nil, err
	}
	var all []measure
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, errors.New(p.Errors[0].Error())
		}
		all = append(all, measurePackage(p))
	}
	slices.SortFunc(all, func(a, b measure) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

func measurePackage(p *packages.Package) measure {
	m := measure{path: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), files: len(p.Syntax)}
	m.cycle = largestCycle(uses(p))
	m.methods, m.largest = mostMethods(p.Types.Scope())
	for _, f := range p.Syntax {
		m.long = append(m.long, tooLong(p.Fset, f)...)
	}
	return m
}

// uses maps each file of a package to the files whose names it uses.
func uses(p *packages.Package) map[string][]string {
	file := func(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }
	graph := map[string][]string{}
	for _, f := range p.Syntax {
		graph[file(f.Pos())] = nil
	}
	for id, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types {
			continue
		}
		from, to := file(id.Pos()), file(object.Pos())
		if from != to && !slices.Contains(graph[from], to) {
			graph[from] = append(graph[from], to)
		}
	}
	return graph
}

// largestCycle returns the largest set of nodes each of which reaches all others.
func largestCycle(graph map[string][]string) []string {
	reached := map[string]map[string]bool{}
	for node := range graph {
		reached[node] = reach(graph, node)
	}
	var largest []string
	for _, node := range slices.Sorted(maps.Keys(graph)) {
		var cycle []string
		for other := range reached[node] {
			if reached[other][node] {
				cycle = append(cycle, other)
			}
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	slices.Sort(largest)
	return largest
}

// reach returns the nodes that can be reached from one by at least one arrow.
func reach(graph map[string][]string, from string) map[string]bool {
	seen := map[string]bool{}
	todo := slices.Clone(graph[from])
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[node] {
			seen[node] = true
			todo = append(todo, graph[node]...)
		}
	}
	return seen
}

func mostMethods(scope *types.Scope) (most int, name string) {
	for _, n := range scope.Names() {
		if _, ok := scope.Lookup(n).(*types.TypeName); !ok {
			continue
		}
		named, ok := scope.Lookup(n).Type().(*types.Named)
		if ok && named.NumMethods() > most {
			most, name = named.NumMethods(), n
		}
	}
	return most, name
}

func tooLong(fset *token.FileSet, f *ast.File) []string {
	var long []string
	file := fset.File(f.Pos())
	if n := file.LineCount(); n > fileLines && !ast.IsGenerated(f) {
		long = append(long, fmt.Sprintf("%s has %d lines", filepath.Base(file.Name()), n))
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > functionLines {
			long = append(long, fmt.Sprintf("%s has %d lines", fn.Name.Name, n))
		}
	}
	return long
}
