package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rsctl/rsctl/pkg/regular"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// maxSpec bounds a spec, maxInserted what one ${file:…} of it inserts.
const (
	maxSpec     = 8 << 20
	maxInserted = 1 << 20
)

// parse reads the spec at path ("-" is standard input) and returns it with
// everything found in it. The spec is nil when there are errors; the error is
// for a file that cannot be read.
func (a *app) parse(path string) (*spec.Spec, spec.Problems, error) {
	name, dir, data, err := a.read(path)
	if err != nil {
		return nil, nil, err
	}
	s, problems := spec.Parse(data, spec.Options{
		File:      name,
		Dir:       dir,
		LookupEnv: os.LookupEnv,
		ReadFile:  func(path string) ([]byte, error) { return regular.Read(path, maxInserted) },
	})
	if !problems.HasErrors() {
		problems = append(problems, topology.Problems(s)...)
	}
	if problems.HasErrors() {
		return nil, problems, nil
	}
	return s, problems, nil
}

// read returns the name for messages, the absolute folder that relative paths
// start from, and the bytes.
func (a *app) read(path string) (name, dir string, data []byte, err error) {
	if path == "-" {
		name, dir = stdinName, "."
		data, err = regular.ReadAll(a.sys.In, maxSpec)
	} else {
		name, dir = path, filepath.Dir(path)
		data, err = regular.Read(path, maxSpec)
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", "", nil, unreadable(path, err)
	}
	return name, dir, data, nil
}

func unreadable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	hint := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = `"rsctl init" writes a starter file; -f names another one`
	case errors.Is(err, regular.ErrKind):
		hint = `"-f -" reads standard input`
	}
	return &failure{fmt.Errorf("cannot read the spec %s: %w", path, err), hint}
}

// load is parse for the commands that need a valid spec: problems go to
// standard error, and a spec with errors is the answer no. The URLs of the
// command line are in place.
func (a *app) load() (*spec.Spec, error) {
	s, problems, err := a.parse(a.file)
	if err != nil {
		return nil, err
	}
	a.showProblems(problems)
	if problems.HasErrors() {
		return nil, &negative{message: summary(a.file, nil, problems)}
	}
	a.override(&s.Broker)
	a.warnOverridden(s.Broker)
	return s, nil
}

// warnOverridden says of URLs from the command line what the rules say of those
// in a file.
func (a *app) warnOverridden(b spec.Broker) {
	if (a.url != "" || a.managementURL != "") && b.ManagementInPlain() {
		a.warn(spec.ManagementInPlain)
	}
}

// showProblems puts problems of the spec where a command has its diagnostics.
func (a *app) showProblems(problems spec.Problems) {
	if a.log != nil {
		a.log.problems(a.stderr(), problems)
		return
	}
	printProblems(a.stderr(), problems)
}

func (a *app) warn(text string) {
	if a.log != nil && a.log.json {
		a.log.Warn(text)
		return
	}
	c := a.stderr()
	c.println(c.paint(yellow, "warning:") + " " + text)
}
