package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// exitLimit is how long a process that was told to stop may take: the drain's
// limit and what a broker that does not answer adds, twice.
const exitLimit = 90 * time.Second

// A process is one rsctl run.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	log bytes.Buffer

	reader sync.Mutex // held while nobody reads the log
	deaf   atomic.Bool
}

// buildRsctl builds the binary into dir.
func buildRsctl(dir string) (string, error) {
	path := filepath.Join(dir, "rsctl")
	out, err := exec.Command("go", "build", "-o", path, "github.com/rsctl/rsctl/cmd/rsctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rsctl: %w\n%s", err, out)
	}
	return path, nil
}

func startProcess(binary string, env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = time.Second // hooks that outlive a killed rsctl keep its output open
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.cmd.Wait() //nolint:errcheck // the state says how it ended
	}()
	return p, nil
}

// Write collects the log. After an error nobody reads it any more.
func (p *process) Write(data []byte) (int, error) {
	p.reader.Lock()
	defer p.reader.Unlock()
	if p.deaf.Load() {
		return 0, io.ErrClosedPipe
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(data)
}

// count is how often the log says text.
func (p *process) count(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.log.Bytes(), []byte(text))
}

func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-p.done
}

var errExit = errors.New("rsctl run did not end as it should")

// stop sends SIGTERM and wants exit code 0.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-p.done:
	case <-time.After(exitLimit):
		p.kill()
		return fmt.Errorf("%w: still running %v after SIGTERM\n%s", errExit, exitLimit, p.tail())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%w: exit code %d\n%s", errExit, code, p.tail())
	}
	return nil
}

// cutShort reports whether the process has ended before its drain was over.
func (p *process) cutShort() bool { return p.cmd.ProcessState.ExitCode() == 3 }

// tail is the end of the log.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
