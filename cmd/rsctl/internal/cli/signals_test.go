package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// slowRun is "rsctl run" of a queue whose handler says "started", waits for its
// "go" file and then says "finished".
type slowRun struct {
	*exec.Cmd
	dir, queue string
	lines      *bufio.Scanner
}

func startSlowRun(t *testing.T) *slowRun {
	t.Helper()
	dir, queue := t.TempDir(), "cli-slow-"+strings.ToLower(rand.Text()[:8])
	script := "echo started; mkfifo go; read x < go; echo finished\n"
	spec := fmt.Sprintf("version: 1\nbroker: {url: %q}\ndeclare_topology: true\nqueues:\n"+
		"  - {name: %s, type: classic, handler: {exec: [sh, ./slow.sh], timeout: 1h}}\n", brokerURL(t), queue)
	for name, text := range map[string]string{"slow.sh": script, "queues.yaml": spec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // a hang is a failure
	t.Cleanup(cancel)
	r := &slowRun{Cmd: exec.CommandContext(ctx, "rsctl", "-f", filepath.Join(dir, "queues.yaml"), "run"), dir: dir, queue: queue}
	log, err := r.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(log)
	t.Cleanup(func() { deleteQueue(t, queue) })
	if code, _, errs := runMain(t, "", "-f", filepath.Join(dir, "queues.yaml"), "apply", "--timeout", "2m"); code != exitOK {
		t.Fatalf("apply: %s", errs)
	}
	if code, _, errs := runMain(t, "", "-f", filepath.Join(dir, "queues.yaml"), "publish", queue, "--body", "x", "--timeout", "2m"); code != exitOK {
		t.Fatalf("publish: %s", errs)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() }) // after a failed test; else it has ended
	r.until(t, "started")
	return r
}

// until reads the log up to a line with text.
func (r *slowRun) until(t *testing.T, text string) {
	t.Helper()
	var seen []string
	for r.lines.Scan() {
		seen = append(seen, r.lines.Text())
		if strings.Contains(r.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("no %q in the log:\n%s", text, strings.Join(seen, "\n"))
}

func (r *slowRun) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// finish reads the rest of the log and returns the exit code.
func (r *slowRun) finish(t *testing.T) int {
	t.Helper()
	for r.lines.Scan() { // the log is read to its end before Wait closes it
	}
	err := r.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.ProcessState.ExitCode()
}

func onQueue(t *testing.T, do func(*amqp.Channel) error) {
	t.Helper()
	conn, err := amqp.Dial(brokerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = do(ch)
	}
	if err != nil {
		t.Error(err)
	}
}

func deleteQueue(t *testing.T, name string) {
	onQueue(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, false, false, false)
		return err
	})
}

func messagesIn(t *testing.T, name string) (n int) {
	t.Helper()
	onQueue(t, func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		n = q.Messages
		return err
	})
	return n
}

func TestTheFirstSignalWaitsForARunningHandler(t *testing.T) {
	t.Parallel()
	r := startSlowRun(t)
	r.signal(t, syscall.SIGTERM)
	r.until(t, "terminated: draining; once more stops at once")
	if err := os.WriteFile(filepath.Join(r.dir, "go"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until(t, "finished")
	if code := r.finish(t); code != exitOK {
		t.Errorf("exit code %d after a clean drain, want %d", code, exitOK)
	}
	if n := messagesIn(t, r.queue); n != 0 {
		t.Errorf("%d messages left, want the acked one gone", n)
	}
}

func TestTheSecondSignalStopsAtOnceAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := startSlowRun(t)
	r.signal(t, syscall.SIGINT)
	r.until(t, "interrupt: draining")
	r.signal(t, syscall.SIGTERM) // at once: another SIGINT would be the same wish
	r.until(t, "terminated again: stopping now")
	r.until(t, "stopped before the drain was over")
	if code := r.finish(t); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if !poll(func() bool { return messagesIn(t, r.queue) == 1 }) {
		t.Errorf("%d messages in the queue, want the unfinished one back", messagesIn(t, r.queue))
	}
}
