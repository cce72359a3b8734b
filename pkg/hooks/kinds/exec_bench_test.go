package kinds

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// BenchmarkExec runs `true` through the exec hook and through a bare os/exec
// loop, alternately and at the same parallelism, and reports how much of the
// bare loop's speed is left.
func BenchmarkExec(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 512)
	hook, err := New(&spec.Handler{Kind: spec.Exec, Command: []spec.Text{{Value: "true"}}, Dir: b.TempDir(), KillGrace: time.Second}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	bare := func() {
		cmd := exec.Command("true")
		cmd.Stdin = bytes.NewReader(body)
		if err := cmd.Run(); err != nil {
			b.Error(err)
		}
	}
	m := hooks.Message{Queue: "orders", MessageID: "1", Attempt: 1, Body: body, Headers: map[string]any{"tenant": "a"}}
	ours := func() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if o, err := hook.Handle(ctx, m); err != nil || o.Verdict != hooks.Ack {
			b.Error(o, err)
		}
	}
	reportRatio(b, 2*runtime.GOMAXPROCS(0), 50, bare, ours)
}

// reportRatio runs both functions b.N times each, in short alternating rounds,
// so that the machine's other load hits both alike. It reports the median
// round's ratio and, less disturbed by other load, that of the processor time.
func reportRatio(b *testing.B, parallel, round int, bare, ours func()) {
	var ratios []float64
	var wall, cpu [2]time.Duration
	for left := b.N; left > 0; left -= round {
		var spent [2]time.Duration
		for i, f := range []func(){bare, ours} {
			start, used := time.Now(), cpuTime(b)
			inParallel(parallel, min(left, round), f)
			spent[i] = time.Since(start)
			wall[i] += spent[i]
			cpu[i] += cpuTime(b) - used
		}
		ratios = append(ratios, float64(spent[0])/float64(spent[1]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-bare")
	b.ReportMetric(float64(cpu[0])/float64(cpu[1]), "of-bare-cpu")
	b.ReportMetric(float64(wall[1].Microseconds())/float64(b.N), "µs/call")
	b.ReportMetric(float64(wall[0].Microseconds())/float64(b.N), "bare-µs/call")
}

// cpuTime is what this process and its children have used.
func cpuTime(b *testing.B) time.Duration {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += u.Utime.Nano() + u.Stime.Nano()
	}
	return time.Duration(sum)
}

func inParallel(workers, n int, f func()) {
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range work {
				f()
			}
		})
	}
	wg.Wait()
}
