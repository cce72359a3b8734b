package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rsctl": func() { os.Exit(Main(os.Args[1:], IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

// The scripts run the real command line without a broker.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup:               isolate,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": wantCode},
	})
}

// isolate keeps the settings of the person who runs the tests out of them.
func isolate(env *testscript.Env) error {
	for _, name := range []string{"AMQP_URL", "NO_COLOR", "TERM", "RABBITMQ_MANAGEMENT_URL"} {
		env.Setenv(name, "")
	}
	return nil
}

// wantCode runs rsctl and compares its exit code: "code 2 rsctl validate x".
func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	var exit interface{ ExitCode() int }
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ok bool
		if exit, ok = err.(interface{ ExitCode() int }); !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if want := args[0]; itoa(got) != want {
		ts.Fatalf("exit code %d, want %s\nstdout:\n%s\nstderr:\n%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// runMain runs one command line in this process.
func runMain(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(args, IO{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// testApp writes to buffers, which are pipes as far as layout goes.
func testApp() *app {
	sys := IO{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	return &app{sys: sys, tty: terminals(sys)}
}

// commands lists the visible commands of the tree.
func commands(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	for _, c := range newRoot(testApp()).Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(all, c)
		}
	}
	if len(all) < 9 {
		t.Fatalf("only %d commands found", len(all))
	}
	return all
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, c := range append(commands(t), newRoot(testApp())) {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			if c.Short == "" || len(c.Long) <= len(c.Short) || !strings.Contains(c.Example, "rsctl "+strings.TrimPrefix(c.Name(), "rsctl")) {
				t.Errorf("%s needs Short, Long and an Example that uses it", c.Name())
			}
			if strings.HasSuffix(c.Short, ".") {
				t.Errorf("Short %q ends in a full stop", c.Short)
			}
			for line := range strings.Lines(c.Long + "\n" + c.Example) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > 88 {
					t.Errorf("help line of %d columns: %q", n, line)
				}
			}
		})
	}
}

func TestEveryWordFlagCompletesItsWords(t *testing.T) {
	t.Parallel()
	for _, c := range commands(t) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			word, ok := f.Value.(*choice)
			if !ok {
				return
			}
			words, found := c.GetFlagCompletionFunc(f.Name)
			if !found {
				t.Errorf("%s --%s has no completion", c.Name(), f.Name)
				return
			}
			if got, _ := words(c, nil, ""); strings.Join(got, " ") != strings.Join(word.allowed, " ") {
				t.Errorf("%s --%s completes %q, accepts %q", c.Name(), f.Name, got, word.allowed)
			}
		})
	}
}

func TestEveryFormatOfACommandHasAWriter(t *testing.T) {
	t.Parallel()
	for _, c := range commands(t) {
		for _, f := range formatsOf(c) {
			if writers[f] == nil {
				t.Errorf("%s offers --output %s, which nothing writes", c.Name(), f)
			}
		}
	}
}

func TestTheStarterIsValidAndFree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queues.yaml")
	if code, _, errs := runMain(t, "", "init", path); code != exitOK {
		t.Fatalf("init: exit code %d: %s", code, errs)
	}
	code, out, errs := runMain(t, "", "validate", path)
	if code != exitOK || !strings.HasSuffix(out, "1 queue, ok\n") || errs != "" {
		t.Errorf("validate of the starter: code %d\n%s%s", code, out, errs)
	}
}
