package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sys/unix"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/proctest"
)

// as makes the re-executed test binary rsctl; the other value is what process 1
// does, where a test may not be process 1.
const (
	as         = "RSCTL_TEST_AS"
	asRsctl    = "rsctl"
	asAdopting = "rsctl below a process that adopts orphans"
)

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case asRsctl:
		main()
	case asAdopting:
		os.Setenv(as, asRsctl)
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		code, err := runBelow()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(98)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// patience bounds every wait, on however busy a machine.
const patience = 5 * time.Minute

// rsctlIn is a command line of rsctl in the folder.
func rsctlIn(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), as+"="+asRsctl)
	return cmd
}

func must(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
}

// startAsProcess1 starts the command line as process 1 of a namespace or, where
// that is not allowed, below a process that adopts orphans like it.
func startAsProcess1(t *testing.T, dir, log string, args ...string) *exec.Cmd {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := rsctlIn(t, dir, args...)
	cmd.Stderr = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err == nil {
		return cmd
	}
	cmd = rsctlIn(t, dir, args...)
	cmd.Stderr = out
	cmd.Env = append(cmd.Env, as+"="+asAdopting)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

const orphanSpec = `version: 1
broker: {url: %q}
declare_topology: true
queues:
  - {name: %s, type: classic, concurrency: 4, handler: {exec: [sh, -c, "(sleep 0.2 &); echo $RSCTL_MESSAGE_ID >>runs"]}}
`

// In a container rsctl is process 1, and gets what handlers leave behind.
func TestProcess1CollectsWhatHandlersLeaveBehindAndPassesTheStopOn(t *testing.T) {
	t.Parallel()
	const messages = 100
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		t.Fatal("RSCTL_AMQP_URL is not set: it names the RabbitMQ this test uses, for example amqp://guest:guest@127.0.0.1:5672/")
	}
	dir, queue := t.TempDir(), "pid1-"+strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() { deleteQueue(t, url, queue) })
	if err := os.WriteFile(filepath.Join(dir, "queues.yaml"), fmt.Appendf(nil, orphanSpec, url, queue), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, rsctlIn(t, dir, "apply", "--timeout", patience.String()))
	must(t, rsctlIn(t, dir, "publish", queue, "--body", "x", "--count", fmt.Sprint(messages), "--timeout", patience.String()))
	log := filepath.Join(dir, "log")
	run := startAsProcess1(t, dir, log, "run", "--listen", "")
	t.Cleanup(func() { run.Process.Kill() }) // after a failed test; else it has ended

	until(t, log, "every message to be handled", func() bool { return linesIn(dir, "runs") == messages })
	until(t, log, "rsctl to be the only child that is left", func() bool { return len(proctest.Children(t, run.Process.Pid)) == 1 })
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Errorf("after a clean drain: %v", err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "draining; once more stops at once") != 1 || strings.Contains(string(text), "stopping now") || strings.Contains(string(text), "process 1") {
		t.Errorf("want one signal in the log and no warning:\n%s", text)
	}
}

// until polls for what ends a test's wait.
func until(t *testing.T, log, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for giveUp := time.After(patience); !ok(); {
		select {
		case <-look.C:
		case <-giveUp:
			text, _ := os.ReadFile(log)
			t.Fatalf("waited %v for %s:\n%s", patience, what, text)
		}
	}
}

func linesIn(dir, name string) int {
	data, _ := os.ReadFile(filepath.Join(dir, name)) // it comes with the first message
	return strings.Count(string(data), "\n")
}

func deleteQueue(t *testing.T, url, name string) {
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Error("the queue of this test could not be deleted: no connection")
		return
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDelete(name, false, false, false)
	}
	if err != nil {
		t.Error(err)
	}
}
