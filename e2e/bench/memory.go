package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	heldTimers = 10_000
	timersSpec = `version: 1
broker: {url: %q}
declare_topology: true
queues:
  - {name: %s, type: classic, delay: timer, concurrency: 64, handler: {http: %q}}
`
)

// timersMemory runs the built rsctl until it holds all messages in its own
// memory and reads what it has resident.
func timersMemory(ctx context.Context, b *bench) (reading, error) {
	dir, err := os.MkdirTemp("", "rsctl-bench-")
	if err != nil {
		return reading{}, err
	}
	defer os.RemoveAll(dir)
	binary, err := buildRsctl(ctx, dir)
	if err != nil {
		return reading{}, err
	}
	if err := b.fill(0); err != nil {
		return reading{}, err
	}
	if err := b.publish(workQueue, heldTimers); err != nil {
		return reading{}, err
	}
	var told atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RSCTL-Outcome", "retry_after 1h")
		told.Add(1)
	}))
	defer endpoint.Close()
	file := filepath.Join(dir, "queues.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, timersSpec, b.url, workQueue, endpoint.URL), 0o600); err != nil {
		return reading{}, err
	}
	cmd := exec.CommandContext(ctx, binary, "-f", file, "run", "--log-level", "error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return reading{}, err
	}
	defer cmd.Wait()         //nolint:errcheck // killed
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	for end := time.Now().Add(time.Minute); told.Load() < heldTimers; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return reading{}, errors.New("not all messages are held after a minute")
		}
	}
	time.Sleep(time.Second) // the last ones are being settled
	kib, err := resident(cmd.Process.Pid)
	if err != nil {
		return reading{}, err
	}
	return reading{fmt.Sprintf("%.1f MB resident", float64(kib)*1024/1e6), "under 60 MB"}, nil
}

var vmRSS = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// resident returns the memory of a process in KiB, as Linux tells it.
func resident(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("only Linux shows it: %w", err)
	}
	m := vmRSS.FindSubmatch(status)
	if m == nil {
		return 0, errors.New("no VmRSS in the process's status")
	}
	return strconv.Atoi(string(m[1]))
}
