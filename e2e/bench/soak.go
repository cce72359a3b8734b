package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
)

const (
	soakBacklog = 100_000
	soakSpec    = `version: 1
broker: {url: %q}
declare_topology: true
queues:
  - name: %s
    type: classic
    max_attempts: 3
    dead_letter: %s
    concurrency: 64
    handler: {http: %q}
`
)

func runSoak(ctx context.Context, length time.Duration) error {
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	return soak(ctx, b, length)
}

// soak keeps the built rsctl at full load for as long as asked, beginning with a
// backlog in which every other message fails, and prints what it has resident
// after a tenth of the time, half of it and all of it.
func soak(ctx context.Context, b *bench, length time.Duration) error {
	dir, err := os.MkdirTemp("", "rsctl-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := buildRsctl(ctx, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(b.fill(0), b.publish(workQueue, soakBacklog)); err != nil {
		return err
	}
	var handled atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		handled.Add(1)
		if rand.IntN(2) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer endpoint.Close()
	file := filepath.Join(dir, "queues.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, soakSpec, b.url, workQueue, sinkQueue, endpoint.URL), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "-f", file, "run", "--log-level", "error", "--listen", "")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()         //nolint:errcheck // killed
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	start := time.Now()
	for _, at := range []time.Duration{length / 10, length / 2, length} {
		if err := b.keepFull(start.Add(at)); err != nil {
			return err
		}
		kib, err := resident(cmd.Process.Pid)
		if err != nil {
			return err
		}
		fmt.Printf("after %-6s %6.1f MB resident, %d deliveries\n", at, float64(kib)*1024/1e6, handled.Load())
	}
	return nil
}

// keepFull tops the queue up until then, and empties the dead-letter queue.
func (b *bench) keepFull(until time.Time) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	for time.Now().Before(until) {
		q, err := ch.QueueDeclarePassive(workQueue, true, false, false, false, nil)
		if err != nil {
			return err
		}
		if missing := soakBacklog/2 - q.Messages; missing > 0 {
			if err := b.publish(workQueue, missing); err != nil {
				return err
			}
		}
		if _, err := ch.QueuePurge(sinkQueue, false); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

// buildRsctl builds the command into dir.
func buildRsctl(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "rsctl")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/rsctl/rsctl/cmd/rsctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rsctl: %w: %s", err, out)
	}
	return binary, nil
}
