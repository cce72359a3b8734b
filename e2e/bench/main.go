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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
)

// rows is what is measured, in the order of the table.
var rows = []row{
	execRow,
	httpRow,
	slowHTTPRow,
	copyRow,
	delayedRow,
	workerRow,
	batchRow,
	orderedRow,
	orderedWorkerRow,
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds per row; the median ratio is shown")
	flag.StringVar(&o.only, "only", "", "measure only rows whose name contains this")
	flag.Float64Var(&o.scale, "scale", 1, "multiply the number of messages")
	flag.BoolVar(&o.install, "install", false, "install the tools to compare with: Debian's packages into the system, npm's into a temporary folder")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the whole run to this file")
	soakFor := flag.Duration("soak", 0, "keep rsctl at full load for so long and print its memory, instead of measuring rows")
	binaries := flag.String("cpu", "", "compare the processor time per delivery of these built rsctls, with commas between them, instead")
	worker := flag.Bool("worker", false, "be the worker of the worker row instead")
	flag.Parse()
	if *worker {
		work(os.Stdin, os.Stdout)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := profiled(*profile, func() error {
		switch {
		case *soakFor > 0:
			return runSoak(ctx, *soakFor)
		case *binaries != "":
			return compareCPU(ctx, os.Stdout, *binaries, o.rounds, int(cpuDeliveries*o.scale))
		}
		return run(ctx, os.Stdout, o)
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

func run(ctx context.Context, out io.Writer, o options) error {
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	var results []result
	for _, r := range rows {
		if !strings.Contains(r.name, o.only) {
			continue
		}
		res, err := measure(ctx, b, r, o)
		if err != nil {
			return err
		}
		results = append(results, res)
	}
	if err := print(out, "bare/s", results); err != nil {
		return err
	}
	return errors.Join(runRivals(ctx, b, out, o), runDelays(ctx, b, out, o.only))
}

// print shows rows whose other side is called other.
func print(out io.Writer, other string, results []result) error {
	if len(results) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "path\tmessages\t%s\trsctl/s\tratio\tmin\tmax\ttarget\t\n", other)
	for _, r := range results {
		ratios := r.ratios()
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", r.name, r.count,
			r.perSecond(r.bare), r.perSecond(r.ours), median(ratios), slices.Min(ratios), slices.Max(ratios), r.target)
	}
	return w.Flush()
}
