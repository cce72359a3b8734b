package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	cpuDeliveries = 40_000
	cpuSpec       = `version: 1
broker: {url: %q}
declare_topology: true
queues:
  - {name: %s, type: classic, concurrency: 64, handler: {http: %q}}
`
)

// compareCPU runs built rsctls in turn, each on the same number of messages for
// an endpoint that acks at once, and prints the processor time that the whole
// process took for each delivery. Unlike messages per second, that hardly depends
// on what else the machine does.
func compareCPU(ctx context.Context, out io.Writer, binaries string, rounds, n int) error {
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	list := strings.Split(binaries, ",")
	took := make([][]time.Duration, len(list))
	for round := range rounds + 1 { // the first one is not counted
		for i, binary := range list {
			d, err := b.cpuOf(ctx, binary, n)
			if err != nil {
				return fmt.Errorf("%s: %w", binary, err)
			}
			if round > 0 {
				took[i] = append(took[i], d)
			}
		}
	}
	for i, binary := range list {
		sorted := slices.Sorted(slices.Values(took[i]))
		ratio := make([]float64, len(sorted))
		for round := range took[i] {
			ratio[round] = float64(took[i][round]) / float64(took[0][round])
		}
		fmt.Fprintf(out, "%s: %v of processor time per delivery, %v to %v; %.3f of the first, %.3f to %.3f\n", binary,
			sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1], median(ratio), slices.Min(ratio), slices.Max(ratio))
	}
	return nil
}

// cpuOf is the processor time that a built rsctl takes for each of n deliveries,
// its start and end included.
func (b *bench) cpuOf(ctx context.Context, binary string, n int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "rsctl-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := b.fill(n); err != nil {
		return 0, err
	}
	var handled atomic.Int64
	done := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if handled.Add(1) == int64(n) {
			close(done)
		}
	}))
	defer endpoint.Close()
	file := filepath.Join(dir, "queues.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, cpuSpec, b.url, workQueue, endpoint.URL), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, binary, "-f", file, "run", "--log-level", "error", "--listen", "")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var late error
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(5 * time.Minute):
		late = errors.New("not done after five minutes")
	}
	if err := cmp.Or(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait(), late); err != nil {
		return 0, err
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Duration(n), nil
}
