package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func quote(s string) string { return strconv.Quote(s) }

// report is what apply and check found, in every form of output. Its JSON form
// is part of the interface; fields are only ever added.
type report struct {
	Command  string         `json:"command"`
	OK       bool           `json:"ok"`
	Broker   string         `json:"broker,omitempty"` // password masked
	Version  string         `json:"server_version,omitempty"`
	Summary  map[string]int `json:"summary"` // how many findings in each state
	Findings []finding      `json:"findings"`
	// Error is what kept the command from looking at everything.
	Error string `json:"error,omitempty"`
}

// writers are the forms of a report; each writes to standard output.
var writers = map[string]func(*app, report) error{
	"text":   writeText,
	"json":   func(a *app, r report) error { return a.json(r) },
	"github": writeGitHub,
	"junit":  writeJUnit,
	"sarif":  writeSARIF,
}

func (a *app) writeReport(r report) error {
	if r.Findings == nil {
		r.Findings = []finding{}
	}
	r.Summary = tally(r.Findings)
	return writers[a.output.value](a, r)
}

var stateColours = map[level]colour{levelOK: green, levelNote: cyan, levelWarning: yellow, levelError: red}

func writeText(a *app, r report) error {
	c := a.stdout()
	t := table{head: []string{"OBJECT", "STATE", "DETAIL"}}
	for _, f := range r.Findings {
		t.cells(cell{f.title(), plain}, cell{f.State, stateColours[f.level()]}, cell{f.Detail, plain})
	}
	if len(t.rows) > 0 {
		t.print(c, "")
	}
	printHints(c, r.Findings)
	c.println(sentence(r))
	return nil
}

// printHints prints each hint once, under the objects it belongs to.
func printHints(c console, findings []finding) {
	var order []string
	subjects := map[string][]string{}
	for _, f := range findings {
		if f.Hint == "" {
			continue
		}
		if _, seen := subjects[f.Hint]; !seen {
			order = append(order, f.Hint)
		}
		subjects[f.Hint] = append(subjects[f.Hint], f.title())
	}
	if len(order) > 0 {
		c.println("")
	}
	for _, hint := range order {
		names := subjects[hint]
		head := strings.Join(names[:min(3, len(names))], ", ")
		if n := len(names) - 3; n > 0 {
			head += fmt.Sprintf(" and %d more", n)
		}
		c.println(wrap("  hint: ", safe(head+": "+hint), c.width))
	}
	if len(order) > 0 {
		c.println("")
	}
}

// sentence is the last line: "check on RabbitMQ 4.3.6 at …: 3 ok, 1 missing".
func sentence(r report) string {
	where := ""
	if r.Version != "" {
		where = " on RabbitMQ " + r.Version
	}
	if r.Broker != "" {
		where += " at " + r.Broker
	}
	var parts []string
	if r.Error != "" {
		parts = append(parts, "could not finish")
	}
	if r.Error == "" && len(r.Findings) == 0 {
		parts = append(parts, "nothing to do")
	}
	for _, s := range slices.Sorted(maps.Keys(r.Summary)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Summary[s], s))
	}
	return r.Command + where + ": " + strings.Join(parts, ", ")
}

// conclude prints a report and turns it into the command's error.
func (a *app) conclude(r report, err error) error {
	if writeErr := a.writeReport(r); writeErr != nil {
		return writeErr
	}
	switch {
	case err != nil:
		return err
	case !r.OK:
		return errNo
	}
	return nil
}
