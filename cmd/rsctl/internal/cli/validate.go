package cli

import (
	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/spec"
)

func newValidate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Check the spec, offline",
		Long: `Check a spec without contacting anything.

Every problem is printed with its position, a stable rule id in brackets and,
where there is one, what to write instead. Without FILE the spec of -f is read.
Exit code 1 when a spec has errors; warnings alone are exit code 0.`,
		Example: `  rsctl validate
  rsctl validate deploy/*.yaml
  helm template . | rsctl validate -
  rsctl validate --output github     annotations in a GitHub workflow`,
		Annotations:       map[string]string{formats: "text json github junit sarif"},
		ValidArgsFunction: completeSpecFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{a.file}
			}
			return validate(a, args)
		},
	}
}

// validated is how one file did.
type validated struct {
	path     string
	spec     *spec.Spec // nil when there are errors
	problems spec.Problems
}

func validate(a *app, paths []string) error {
	var all []validated
	valid := true
	for _, path := range paths {
		s, problems, err := a.parse(path)
		if err != nil {
			return err
		}
		valid = valid && !problems.HasErrors()
		all = append(all, validated{path, s, problems})
	}
	if err := printValidated(a, all, valid); err != nil {
		return err
	}
	if !valid {
		return errNo
	}
	return nil
}

// validateJSON is the form of "validate --output json".
type validateJSON struct {
	Valid bool           `json:"valid"`
	Files []validateFile `json:"files"`
}

type validateFile struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Queues   int           `json:"queues"` // 0 when the file has errors
	Problems []problemJSON `json:"problems"`
}

type problemJSON struct {
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func printValidated(a *app, all []validated, valid bool) error {
	switch a.output.value {
	case "text":
		for _, v := range all {
			printProblems(a.stdout(), v.problems)
			a.stdout().println(summary(v.path, v.spec, v.problems))
		}
		return nil
	case "json":
		doc := validateJSON{Valid: valid, Files: []validateFile{}}
		for _, v := range all {
			doc.Files = append(doc.Files, v.json())
		}
		return a.json(doc)
	}
	var findings []finding
	for _, v := range all {
		findings = append(findings, fromProblems(v.problems)...)
	}
	return a.writeReport(report{Command: "validate", OK: valid, Findings: findings})
}

func (v validated) json() validateFile {
	f := validateFile{File: v.path, Valid: v.spec != nil, Problems: []problemJSON{}}
	if v.spec != nil {
		f.Queues = len(v.spec.Queues)
	}
	for _, p := range v.problems {
		f.Problems = append(f.Problems, problemJSON{
			p.Pos.Line, p.Pos.Col, p.Severity.String(), p.Rule, p.Message, p.Hint,
		})
	}
	return f
}
