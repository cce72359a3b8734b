package service_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/rsctl/rsctl/pkg/spec"
)

// The page for programs begins with one. It is built as it stands there, handles a
// message and ends with a signal.
func TestLibraryPage_ProgramRunsAsItSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, program := block(t, page, "yaml"), block(t, page, "go")
	write(t, filepath.Join(dir, "queues.yaml"), file)
	write(t, filepath.Join(dir, "main.go"), program)
	binary := filepath.Join(dir, "orders")
	if out, err := exec.Command("go", "build", "-o", binary, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	host := ownHost(t)
	s, problems := spec.Parse([]byte(file), spec.Options{LookupEnv: func(string) (string, bool) { return host, true }})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	publish(s, "orders", "", "3 apples")

	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "AMQP_URL="+host)
	log := &lines{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(out)
	if !printed.Scan() || printed.Text() != "attempt 1 of 5: 3 apples" {
		t.Errorf("it printed %q; its log:\n%s", printed.Text(), log)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if printed.Scan() {
		t.Errorf("it also printed %q", printed.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v; its log:\n%s", err, log)
	}
	if n := ready(t, s, "orders"); n != 0 {
		t.Errorf("%d messages are left, want both to be settled", n)
	}
	awaitReady(t, s, "orders.dead", 1) // the one without a body
}

// block returns the first fenced block of that language.
func block(t *testing.T, page []byte, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatalf("there is no block of %s", language)
	}
	return string(m[1])
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The table of packages names all that a program may import, but for what is plumbing.
func TestLibraryPage_NamesPackagesThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(pkg/[a-z/]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 8 {
		t.Fatalf("only %d packages", len(rows))
	}
	for _, row := range rows {
		if _, err := os.Stat(filepath.Join("../..", row[1])); err != nil {
			t.Error(err)
		}
	}
}
