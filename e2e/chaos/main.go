// Chaos runs every fault against rsctl on brokers of its own and accounts for
// every message:
//
//	go run ./e2e/chaos [-time 10m] [-series 4.3] [-fault TEXT] [-log DIR]
//
// It prints a table and ends with 1 when a message was lost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/e2e/ledger"
	"github.com/rsctl/rsctl/e2e/rabbit"
)

type options struct {
	time   time.Duration
	series string
	fault  string
	logs   string
}

func main() {
	var o options
	flag.DurationVar(&o.time, "time", 5*time.Minute, "about how long in all, without starting brokers and draining queues")
	flag.StringVar(&o.series, "series", "", "RabbitMQ series: installed, "+strings.Join(rabbit.Series(), ", "))
	flag.StringVar(&o.fault, "fault", "", "only faults whose name this regular expression matches")
	flag.StringVar(&o.logs, "log", "", "keep the logs of rsctl in this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reports whether nothing was lost and every fault could be played.
func run(ctx context.Context, o options) (bool, error) {
	dir, err := os.MkdirTemp("", "rsctl-chaos-bin-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	binary, err := buildRsctl(dir)
	if err != nil {
		return false, err
	}
	wanted, err := regexp.Compile(o.fault)
	if err != nil {
		return false, fmt.Errorf("-fault: %w", err)
	}
	chosen := choose(wanted)
	if len(chosen) == 0 {
		return false, fmt.Errorf("no fault is called like %q", o.fault)
	}
	p := plan{binary: binary, length: o.time / time.Duration(len(chosen)), log: keeper(o.logs)}
	rows, err := playAll(ctx, o, chosen, p)
	return judge(rows), errors.Join(err, ledger.Table(os.Stdout, rows))
}

func choose(wanted *regexp.Regexp) []fault {
	var chosen []fault
	for _, f := range faults() {
		if wanted.MatchString(f.name) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// playAll starts one node for all faults that need no more, and a cluster.
func playAll(ctx context.Context, o options, chosen []fault, p plan) ([]ledger.Row, error) {
	var rows []ledger.Row
	for _, size := range []int{1, 3} {
		var here []fault
		for _, f := range chosen {
			if (f.where == cluster) == (size == 3) {
				here = append(here, f)
			}
		}
		if len(here) == 0 {
			continue
		}
		v, stop, err := startVenue(ctx, size, rabbit.Options{Series: o.series, Progress: say})
		if err != nil {
			return rows, err
		}
		for _, f := range here {
			if ctx.Err() == nil {
				say(f.name)
				rows = append(rows, play(ctx, v, f, p))
			}
		}
		if err := stop(); err != nil {
			return rows, err
		}
	}
	return rows, context.Cause(ctx)
}

func say(line string) { fmt.Fprintln(os.Stderr, "chaos:", line) }

// tooLate is how long an innocent message may wait, whatever others are about.
const tooLate = 2 * time.Second

func judge(rows []ledger.Row) bool {
	for _, r := range rows {
		a := r.Account
		if r.Err != nil || a.In == 0 || len(a.Lost) > 0 || a.Latest > tooLate || r.MayDie >= 0 && len(a.HealthyDead) > r.MayDie {
			return false
		}
	}
	return len(rows) > 0
}

// keeper writes the log of every process to a file of its own.
func keeper(dir string) func(string, *process) {
	if dir == "" {
		return nil
	}
	return func(fault string, p *process) {
		name := fmt.Sprintf("%s-%d.log", strings.ReplaceAll(fault, " ", "-"), p.cmd.Process.Pid)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := os.WriteFile(filepath.Join(dir, name), p.log.Bytes(), 0o644); err != nil {
			say(err.Error())
		}
	}
}
