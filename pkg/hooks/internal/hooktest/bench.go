package hooktest

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ReportRatio runs both functions b.N times each, in short alternating rounds,
// so that the machine's other load hits both alike. It reports the median
// round's ratio and, less disturbed by other load, that of the processor time.
func ReportRatio(b *testing.B, parallel, round int, bare, ours func()) {
	var ratios []float64
	var wall, cpu [2]time.Duration
	for left := b.N; left > 0; left -= round {
		var spent [2]time.Duration
		for i, f := range []func(){bare, ours} {
			start, used := time.Now(), cpuTime(b)
			InParallel(parallel, min(left, round), f)
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

// InParallel calls f n times, with as many workers.
func InParallel(workers, n int, f func()) {
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
