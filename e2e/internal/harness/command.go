package harness

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit is far more than any command here needs on a loaded machine.
const limit = 5 * time.Minute

// A Result is what a finished command left.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Spec writes a spec and, beside it, executable handlers, and returns the
// spec's path. The folder goes with the test.
func Spec(t testing.TB, text string, handlers map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range handlers {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "queues.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Rsctl runs rsctl on b's virtual host to its end. env holds NAME=VALUE lines.
func (b *Broker) Rsctl(env []string, args ...string) Result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(b.t), patient(args)...)
	cmd.Env = append(os.Environ(), append(env, "AMQP_URL="+b.URL)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		b.t.Fatalf("rsctl %s: %v, %v\n%s", strings.Join(args, " "), err, ctx.Err(), stderr.String())
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// patient gives a short command, which gives up after 10 s by itself, the time
// that a busy machine may need.
func patient(args []string) []string {
	for _, a := range args {
		if slices.Contains([]string{"apply", "check", "publish"}, a) {
			return append(slices.Clone(args), "--timeout", limit.String())
		}
	}
	return args
}

// MustRsctl is Rsctl for a command that has to succeed.
func (b *Broker) MustRsctl(env []string, args ...string) Result {
	b.t.Helper()
	r := b.Rsctl(env, args...)
	if r.Code != 0 {
		b.t.Fatalf("rsctl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// A Process is a command that runs beside the test.
type Process struct {
	Cmd *exec.Cmd

	mu   sync.Mutex
	log  bytes.Buffer
	done chan struct{}
}

// StartRsctl starts rsctl; it is killed at the latest when the test ends.
func (b *Broker) StartRsctl(env []string, args ...string) *Process {
	b.t.Helper()
	p := &Process{Cmd: exec.Command(Binary(b.t), args...), done: make(chan struct{})}
	p.Cmd.Env = append(os.Environ(), append(env, "AMQP_URL="+b.URL)...)
	p.Cmd.Stdout, p.Cmd.Stderr = p, p
	// Handlers that outlive a killed rsctl keep its output open; do not wait for
	// them.
	p.Cmd.WaitDelay = time.Second
	if err := p.Cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.Cmd.Wait() //nolint:errcheck // the state says how it ended
	}()
	b.t.Cleanup(func() { p.Kill() })
	return p
}

// Write collects the output.
func (p *Process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(data)
}

// Output returns what the process has printed so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	p.Cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.Cmd.Process.Signal(s) }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits for the end and returns the exit code.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("rsctl did not end within %v:\n%s", limit, p.Output())
		return -1
	}
}

// patience bounds every wait, on however busy a machine.
const patience = 3 * time.Minute

// Eventually polls until ok.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %v for: %s", patience, what)
}
