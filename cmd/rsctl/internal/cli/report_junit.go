package cli

import (
	"encoding/xml"
	"fmt"
	"io"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	File    string     `xml:"file,attr,omitempty"`
	Line    int        `xml:"line,attr,omitempty"`
	Failure *junitNote `xml:"failure"`
	Error   *junitNote `xml:"error"`
	Skipped *junitNote `xml:"skipped"`
	Output  string     `xml:"system-out,omitempty"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit makes one test case of each finding: not verified is skipped, a
// warning passes with its text as output.
func writeJUnit(a *app, r report) error {
	suite := junitSuite{Name: "rsctl " + r.Command}
	for _, f := range r.Findings {
		suite.add(junitOf(r.Command, f))
	}
	if r.Error != "" {
		suite.add(junitCase{Class: "rsctl." + r.Command, Name: "finishes", Error: &junitNote{Message: oneLine(r.Error)}})
	}
	out, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{suite}}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	_, err = io.WriteString(a.sys.Out, xml.Header+string(out)+"\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func junitOf(command string, f finding) junitCase {
	c := junitCase{Class: "rsctl." + command + "." + f.Kind, Name: f.title(), File: f.File, Line: f.Line}
	switch f.level() {
	case levelError:
		c.Failure = &junitNote{Message: f.message(), Type: f.rule(), Text: where(f) + oneLine(f.Hint)}
	case levelNote:
		c.Skipped = &junitNote{Message: f.message()}
	case levelWarning:
		c.Output = "warning: " + f.message()
	}
	return c
}

// where is "file:line:col: " for a finding that has a place.
func where(f finding) string {
	if f.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
}
