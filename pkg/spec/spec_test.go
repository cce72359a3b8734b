package spec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testOptions is a small world: one directory, a few variables, two files.
func testOptions(file string) Options {
	env := map[string]string{
		"EMPTY": "", "SECRET": "hunter2", "WORKERS": "7", "FLAG": "true", "WAIT": "90s",
		"KIND": "quorum", "USERword": "x", "NUMBER": "42",
	}
	files := map[string]string{
		"/spec/secret.txt": "from-file\n", "/run/secrets/url": "amqp://u:p%40ss@mq/\r\n",
	}
	return Options{
		File: file,
		Dir:  "/spec",
		LookupEnv: func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		},
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := files[name]; ok {
				return []byte(data), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no such file or directory")}
		},
	}
}

// mustParse parses text that has no errors.
func mustParse(t *testing.T, text string) *Spec {
	t.Helper()
	s, problems := Parse([]byte(text), testOptions("queues.yaml"))
	if problems.HasErrors() {
		t.Fatalf("unexpected problems:\n%s", problems)
	}
	return s
}

// A spec under testdata/ok uses everything right, and gets no problem at all.
func TestOKIsSilent(t *testing.T) {
	t.Parallel()
	for _, name := range golden(t, "ok") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			s, problems := Parse(readFile(t, name), testOptions(filepath.Base(name)))
			if len(problems) > 0 {
				t.Errorf("problems:\n%s", problems)
			}
			if s == nil || len(s.Queues) == 0 {
				t.Error("no spec came back")
			}
		})
	}
}

// Each testdata/err/NAME.yaml and testdata/warn/NAME.yaml has a NAME.out with
// the exact text a user sees. Run with UPDATE=1 to rewrite the .out files, then
// read the diff.
func TestProblemsGolden(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"err", "warn"} {
		for _, name := range golden(t, kind) {
			t.Run(kind+"/"+filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				s, problems := Parse(readFile(t, name), testOptions(filepath.Base(name)))
				if wantErrors := kind == "err"; problems.HasErrors() != wantErrors || (s == nil) != wantErrors {
					t.Errorf("errors: %t, spec: %t\n%s", problems.HasErrors(), s != nil, problems)
				}
				compareGolden(t, strings.TrimSuffix(name, ".yaml")+".out", problems.String())
			})
		}
	}
}

func golden(t *testing.T, kind string) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/" + kind + "/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no specs in testdata/%s: %v", kind, err)
	}
	return names
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(readFile(t, file)); got != want {
		t.Errorf("output differs from %s:\n got %s\nwant %s", file, got, want)
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
