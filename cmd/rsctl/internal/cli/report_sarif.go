package cli

import (
	"path/filepath"
	"slices"
)

// The part of SARIF 2.1.0 that code scanning reads.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID string `json:"id"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string       `json:"level"`
	Message sarifMessage `json:"message"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifMessage    `json:"message"`
	Locations []sarifLocation `json:"locations,omitempty"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	Line   int `json:"startLine"`
	Column int `json:"startColumn"`
}

var sarifLevels = map[level]string{levelNote: "note", levelWarning: "warning", levelError: "error"}

// writeSARIF writes everything that is not ok as a result of one run.
func writeSARIF(a *app, r report) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "rsctl", Version: readVersion().Version,
			InformationURI: "https://github.com/rsctl/rsctl", Rules: []sarifRule{},
		}},
		Invocations: []sarifInvocation{{Successful: r.Error == ""}},
		Results:     []sarifResult{},
	}
	if r.Error != "" {
		run.Invocations[0].Notifications = []sarifNotification{{"error", sarifMessage{oneLine(r.Error)}}}
	}
	for _, f := range r.Findings {
		run.add(f)
	}
	return a.json(sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func (run *sarifRun) add(f finding) {
	name, ok := sarifLevels[f.level()]
	if !ok {
		return
	}
	if rule := (sarifRule{f.rule()}); !slices.Contains(run.Tool.Driver.Rules, rule) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	text := f.message()
	if f.Hint != "" {
		text += ". " + oneLine(f.Hint)
	}
	run.Results = append(run.Results, sarifResult{f.rule(), name, sarifMessage{text}, f.sarifLocations()})
}

func (f finding) sarifLocations() []sarifLocation {
	if f.File == "" || f.File == stdinName {
		return nil
	}
	p := sarifPhysical{Artifact: sarifArtifact{filepath.ToSlash(f.File)}}
	if f.Line > 0 {
		p.Region = &sarifRegion{f.Line, f.Column}
	}
	return []sarifLocation{{p}}
}
