package exec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestExecUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hooktest.WriteFile(t, filepath.Join(dir, "plain.sh"), "#!/bin/sh\n", 0o644)
	hooktest.WriteFile(t, filepath.Join(dir, "jobs", "job.sh"), "#!/bin/sh\n", 0o755)
	hooktest.WriteFile(t, filepath.Join(dir, "lost.sh"), "#!/no/such/shell\n", 0o755)
	hooktest.WriteFile(t, filepath.Join(dir, "text"), "echo hi\n", 0o755)
	for _, tt := range []struct {
		name, command, dir string
		parts              []string
		unchecked          bool // only starting it tells
	}{
		{name: "a missing file", command: "./gone.sh", parts: []string{dir + "/gone.sh", "no such file"}},
		{name: "a file that is not executable", command: "./plain.sh", parts: []string{dir + "/plain.sh", "permission denied", "chmod"}},
		{name: "a directory", command: "./jobs", parts: []string{dir + "/jobs", "is a directory"}},
		{name: "a bare name that PATH lacks", command: "no-such-command", parts: []string{"no-such-command", "not found in PATH"}},
		{name: "a whole command line in one item", command: "sh -c 'echo hi'", parts: []string{"not found", `["sh", "-c", "echo hi"]`}},
		{name: "a path with arguments in one item", command: "./jobs/job.sh --fast", parts: []string{"no such file", "separate items"}},
		{name: "a command relative to dir instead of the spec file", command: "./job.sh", dir: "jobs",
			parts: []string{dir + "/job.sh", "relative to the spec file", dir + "/jobs/job.sh"}},
		{name: "a working directory that is missing", command: "true", dir: "gone", parts: []string{"working directory", dir + "/gone", "no such file"}},
		{name: "a file below a file", command: "./plain.sh/x", parts: []string{"not a directory"}},
		{name: "a script whose interpreter is missing", command: "./lost.sh", parts: []string{dir + "/lost.sh", "interpreter"}, unchecked: true},
		{name: "a script without a first line", command: "./text", parts: []string{dir + "/text", "#!/bin/sh"}, unchecked: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := hooktest.Command(t, tt.command)
			h.Dir = filepath.Join(dir, tt.dir)
			hook := newHook(t, h, setup.Options{Dir: dir})
			_, err := hook.Handle(t.Context(), hooks.Message{Body: []byte("x")})
			hooktest.WantUnavailable(t, "Handle()", err, tt.parts)
			if !tt.unchecked {
				hooktest.WantUnavailable(t, "Check()", hook.(hooks.Checker).Check(t.Context()), tt.parts)
			}
		})
	}
}

func TestExecRecovers(t *testing.T) {
	t.Parallel()
	h := hooktest.Command(t, "./job.sh")
	hook := newHook(t, h, setup.Options{})
	if _, err := hook.Handle(t.Context(), hooks.Message{}); !errors.Is(err, hooks.ErrUnavailable) {
		t.Fatalf("Handle() = %v, want ErrUnavailable", err)
	}
	hooktest.WriteFile(t, filepath.Join(h.Dir, "job.sh"), "#!/bin/sh\nexit 65\n", 0o755)
	if o := hooktest.Handle(t, hook, hooks.Message{}); o.Verdict != hooks.Drop {
		t.Errorf("got %+v once the file is there, want Drop", o)
	}
}

func TestExecFindsCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real := filepath.Join(dir, "releases", "1")
	if err := os.MkdirAll(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("releases/1", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	script := hooktest.WriteFile(t, filepath.Join(dir, "bin", "job"), "#!/bin/sh\ntest \"$PWD\" = \"$(pwd -P)\" || exit 3\necho $PWD > "+dir+"/$1\n", 0o755)
	for _, tt := range []struct {
		name, command, path string
	}{
		{"a path from the spec file, whatever the working directory", "./bin/job", "/usr/bin:/bin"},
		{"an absolute path", script, "/usr/bin:/bin"},
		{"a relative entry of PATH, from the spec file", "job", "./bin:/usr/bin:/bin"},
		{"an absolute entry of PATH", "job", "/usr/bin:/bin:" + filepath.Dir(script)},
		{"behind an entry that does not exist", "job", "/no/such:" + script + ":bin:/usr/bin:/bin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := strings.ReplaceAll(tt.name, " ", "-")
			h := hooktest.Command(t, tt.command, out)
			h.Dir = filepath.Join(dir, "current")
			hook := newHook(t, h, setup.Options{Dir: dir, Env: []string{"PATH=" + tt.path}})
			if err := hook.(hooks.Checker).Check(t.Context()); err != nil {
				t.Errorf("Check() = %v", err)
			}
			if o := hooktest.Handle(t, hook, hooks.Message{}); o.Verdict != hooks.Ack {
				t.Fatalf("got %+v, want Ack", o)
			}
			if got := strings.TrimSpace(hooktest.ReadFile(t, filepath.Join(dir, out))); got != real {
				t.Errorf("PWD = %s, want %s", got, real)
			}
		})
	}
}

func TestExecPathDefaults(t *testing.T) {
	t.Parallel()
	h := hooktest.Command(t, "true")
	if o := hooktest.Handle(t, newHook(t, h, setup.Options{Env: []string{"A=1"}}), hooks.Message{}); o.Verdict != hooks.Ack {
		t.Errorf("without PATH: got %+v, want Ack", o)
	}
	h.Env = []spec.EnvVar{{Name: "PATH", Value: spec.Text{Value: "/no/such"}}}
	_, err := newHook(t, h, setup.Options{}).Handle(t.Context(), hooks.Message{})
	hooktest.WantUnavailable(t, "Handle() with the spec's PATH", err, []string{"not found in PATH"})
}

func TestExecProgramBeingWritten(t *testing.T) {
	t.Parallel()
	binary, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	h := hooktest.Command(t, "./job")
	path := hooktest.WriteFile(t, filepath.Join(h.Dir, "job"), string(binary), 0o755)
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	hook := newHook(t, h, setup.Options{})
	_, err = hook.Handle(t.Context(), hooks.Message{})
	hooktest.WantUnavailable(t, "Handle() of a file that stays open", err, []string{"text file busy"})
	hook.(*command).cmd.BusyFor = time.Minute
	time.AfterFunc(100*time.Millisecond, func() { writer.Close() })
	if o := hooktest.Handle(t, hook, hooks.Message{}); o.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack once the writer has closed the file", o)
	}
}

// A deployment that copies over the program, again and again, fails no message:
// it may only make the hook unavailable for a moment.
func TestExecProgramBeingReplacedFailsNoMessage(t *testing.T) {
	t.Parallel()
	binary, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	h := hooktest.Command(t, "./job")
	path := hooktest.WriteFile(t, filepath.Join(h.Dir, "job"), string(binary), 0o755)
	hook := newHook(t, h, setup.Options{})
	var deploys sync.WaitGroup
	done := make(chan struct{})
	deploys.Go(func() {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-done:
				return
			case <-again.C:
				_ = os.WriteFile(path, binary, 0o755) // refused while the program runs
			}
		}
	})
	for acked := 0; acked < 100; {
		o, err := hook.Handle(t.Context(), hooks.Message{})
		switch {
		case err == nil && o.Verdict == hooks.Ack:
			acked++
		case err == nil || !strings.Contains(err.Error(), "text file busy"):
			t.Fatalf("got %+v, %v after %d messages, want Ack", o, err, acked)
		}
	}
	close(done)
	deploys.Wait()
}

func TestExecHidesSecretCommands(t *testing.T) {
	t.Parallel()
	h := hooktest.Command(t, "x")
	h.Command = []spec.Text{{Value: "./secret-path", Source: "${CMD}"}}
	_, err := newHook(t, h, setup.Options{}).Handle(t.Context(), hooks.Message{})
	hooktest.WantUnavailable(t, "Handle()", err, []string{"${CMD}"})
	if strings.Contains(err.Error(), "secret-path") {
		t.Errorf("error %q shows what came from the environment", err)
	}
}
