// Command bench measures rsctl against bare clients on the same broker, in one
// run, as ratios: absolute numbers do not travel between machines, ratios do.
//
// Each row runs the bare loop and rsctl in turn, several rounds, and shows the
// median of the ratios round by round. Behind the rows come what cannot be a
// ratio: the memory of held timers and how late delayed retries come. It needs
// RSCTL_AMQP_URL; make bench starts a private broker.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A row is one path that is measured. bare and ours handle the same messages
// and return how long that took.
type row struct {
	name   string
	target float64 // least ratio of ours to bare, in messages per second
	count  int     // messages per round
	bare   func(ctx context.Context, b *bench, n int) (time.Duration, error)
	ours   func(ctx context.Context, b *bench, n int) (time.Duration, error)
}

// rows is what is measured, in the order of the table.
var rows = []row{
	execRow,
	httpRow,
	slowHTTPRow,
	copyRow,
	delayedRow,
	workerRow,
}

// result is a measured row.
type result struct {
	row
	bare, ours []time.Duration // by round
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds per row; the median ratio is shown")
	only := flag.String("only", "", "measure only rows whose name contains this")
	scale := flag.Float64("scale", 1, "multiply the number of messages")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the whole run to this file")
	soakFor := flag.Duration("soak", 0, "keep rsctl at full load for so long and print its memory, instead of measuring rows")
	worker := flag.Bool("worker", false, "be the worker of the worker row instead")
	flag.Parse()
	if *worker {
		work(os.Stdin, os.Stdout)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := profiled(*profile, func() error {
		if *soakFor > 0 {
			return runSoak(ctx, *soakFor)
		}
		return run(ctx, os.Stdout, *rounds, *only, *scale)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// profiled runs f under the CPU profiler when there is a file to write to.
func profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := pprof.StartCPUProfile(w); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return f()
}

func run(ctx context.Context, out io.Writer, rounds int, only string, scale float64) error {
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	var results []result
	for _, r := range rows {
		if !strings.Contains(r.name, only) {
			continue
		}
		r.count = int(float64(r.count) * scale)
		fmt.Fprintf(os.Stderr, "bench: %s, %d messages, %d rounds\n", r.name, r.count, rounds)
		res, err := measure(ctx, b, r, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		results = append(results, res)
	}
	if len(results) > 0 {
		if err := print(out, results); err != nil {
			return err
		}
	}
	return runDelays(ctx, b, out, only)
}

// measure runs one round that is not counted, then rounds in turn.
func measure(ctx context.Context, b *bench, r row, rounds int) (result, error) {
	res := result{row: r}
	for i := range rounds + 1 {
		bare, err := labelled(ctx, "bare", b, r.count, r.bare)
		if err != nil {
			return res, fmt.Errorf("bare: %w", err)
		}
		ours, err := labelled(ctx, "rsctl", b, r.count, r.ours)
		if err != nil {
			return res, fmt.Errorf("rsctl: %w", err)
		}
		if i > 0 {
			res.bare, res.ours = append(res.bare, bare), append(res.ours, ours)
		}
	}
	return res, nil
}

// labelled runs one side with a label by which a profile can be cut.
func labelled(ctx context.Context, side string, b *bench, n int, run func(context.Context, *bench, int) (time.Duration, error)) (took time.Duration, err error) {
	pprof.Do(ctx, pprof.Labels("side", side), func(ctx context.Context) { took, err = run(ctx, b, n) })
	return took, err
}

func print(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "path\tmessages\tbare/s\trsctl/s\tratio\tmin\tmax\ttarget\t")
	for _, r := range results {
		ratios := r.ratios()
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", r.name, r.count,
			r.perSecond(r.bare), r.perSecond(r.ours), median(ratios), slices.Min(ratios), slices.Max(ratios), r.target)
	}
	return w.Flush()
}

// ratios is the speed of rsctl in parts of the bare loop's, round by round.
func (r result) ratios() []float64 {
	var list []float64
	for i := range r.bare {
		list = append(list, float64(r.bare[i])/float64(r.ours[i]))
	}
	return list
}

func (r result) perSecond(times []time.Duration) float64 {
	var list []float64
	for _, d := range times {
		list = append(list, float64(r.count)/d.Seconds())
	}
	return median(list)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
