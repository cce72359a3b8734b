package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A rival is a tool that people use today for what a kind of hook does. Both
// sides of its row are timed from the first settlement to the last, or where a
// tool does not show its first one, from the start.
type rival struct {
	row            // bare is the tool
	hint    string // where to get it
	debian  string // the package to install; "": npm has it
	missing func(ctx context.Context, t *tools) error
}

// tools is what has been found for the rivals.
type tools struct {
	install bool   // what is missing
	dir     string // where packages that need not be the system's go
	scripts string // the folder of what is written for the rivals
	python  string // one that has Celery
}

// runRivals measures each rival that is there, and names the others. One that
// fails does not keep the next from being measured.
func runRivals(ctx context.Context, b *bench, out io.Writer, o options) error {
	t, err := newTools(o.install)
	if err != nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	var results []result
	var errs []error
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rivals(t) {
		if !strings.Contains(r.name, o.only) {
			continue
		}
		if err := t.get(ctx, r); err != nil {
			fmt.Fprintf(w, "%s\tnot measured: %v; %s, or: make bench RIVALS=1\t\n", r.name, err, r.hint)
			continue
		}
		res, err := measure(ctx, b, r.row, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		results = append(results, res)
	}
	return errors.Join(append(errs, print(out, "theirs/s", results), w.Flush())...)
}

func newTools(install bool) (*tools, error) {
	dir, err := os.MkdirTemp("", "rsctl-rivals-")
	if err != nil {
		return nil, err
	}
	scripts, err := filepath.Abs("e2e/bench/rivals")
	return &tools{install: install, dir: dir, scripts: scripts}, err
}

// get returns nil when the rival can be run, installing it if that was asked for.
func (t *tools) get(ctx context.Context, r rival) error {
	if _, err := os.Stat(t.scripts); err != nil {
		return fmt.Errorf("this is not the repository's folder: %w", err)
	}
	err := r.missing(ctx, t)
	if err == nil || !t.install {
		return err
	}
	for _, command := range t.installs(r) {
		if err := quietly(exec.CommandContext(ctx, command[0], command[1:]...)); err != nil {
			return err
		}
	}
	return r.missing(ctx, t)
}

func (t *tools) installs(r rival) [][]string {
	if r.debian == "" {
		return [][]string{{"npm", "install", "--no-fund", "--no-audit", "--prefix", t.dir, rascalPackage}}
	}
	return [][]string{
		{"apt-get", "update", "-q"},
		{"apt-get", "install", "-y", "-q", "--no-install-recommends", r.debian},
	}
}

// quietly runs a command whose output matters only when it fails.
func quietly(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lines[len(lines)-1])
}

// timed runs a rival that prints how many seconds it took, and ends it.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	limit := time.AfterFunc(rivalLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer limit.Stop()
	took, err := settledIn(out)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it has nothing more to do
	_ = cmd.Wait()                                      // killed
	if err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return took, nil
}

// settledIn waits for the line in which a rival tells its time.
func settledIn(out io.Reader) (time.Duration, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "seconds: "); ok {
			seconds, err := strconv.ParseFloat(text, 64)
			return time.Duration(seconds * float64(time.Second)), err
		}
	}
	return 0, errors.Join(errors.New("ended without telling its time"), lines.Err())
}

// rivalLimit is the longest that one round of a rival may take.
const rivalLimit = 5 * time.Minute

// fillOrders fills the queue with what make makes of an order.
func (b *bench) fillOrders(n int, shape func(order string, p *amqp.Publishing)) error {
	return b.fillWith(n, func(i int) amqp.Publishing {
		p := b.message(i)
		p.ContentType = "application/json"
		shape(`{"sku": "A-1", "n": 2, "note": "`+strings.Repeat("x", len(b.body)-34)+`"}`, &p)
		return p
	})
}
