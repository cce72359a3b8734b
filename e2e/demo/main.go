// Demo shows rsctl at work: it applies examples/orders.yaml, publishes a dozen
// orders, lets "rsctl run --drain" handle them and prints how each one ended.
// "make demo" runs it on a private RabbitMQ. It fails when an order did not end
// as it must, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/vhost"
)

const specFile = "examples/orders.yaml"

// limit is far more than the demo needs.
const limit = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run sets the stage, plays and removes the stage.
func run(ctx context.Context) (err error) {
	host, err := vhost.Create(ctx, fmt.Sprintf("rsctl-demo-%08x", rand.Uint32()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Remove(context.WithoutCancel(ctx))) }()
	dir, err := os.MkdirTemp("", "rsctl-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	journal := filepath.Join(dir, "journal")
	url, server, err := startNotify(journal)
	if err != nil {
		return err
	}
	defer server.Close()

	s := stage{ctx: ctx, binary: filepath.Join(dir, "rsctl"), url: host.URL, journal: journal}
	s.env = append(os.Environ(), "AMQP_URL="+host.URL, "NOTIFY_URL="+url, "JOURNAL="+journal)
	s.env = append(s.env, charger(ctx)...)
	return s.play()
}

// charger picks an interpreter that works for the handler of payments.
func charger(ctx context.Context) []string {
	for _, c := range []struct{ command, try, script string }{
		{"python3", "-c", "handlers/charge.py"}, {"node", "-e", "handlers/charge.js"},
	} {
		if exec.CommandContext(ctx, c.command, c.try, "0").Run() == nil {
			return []string{"CHARGE_WITH=" + c.command, "CHARGE_SCRIPT=" + c.script}
		}
	}
	return []string{"CHARGE_WITH=sh", "CHARGE_SCRIPT=handlers/charge.sh"}
}

type stage struct {
	ctx     context.Context
	binary  string
	url     string
	journal string
	env     []string
}

// play is the demo as the reader sees it.
func (s stage) play() error {
	if out, err := s.command("go", "build", "-o", s.binary, "./cmd/rsctl").CombinedOutput(); err != nil {
		return fmt.Errorf("build rsctl: %w\n%s", err, out)
	}
	say("1. The spec %s says which queues there are, how often a\n   message may be tried and who handles it. \"rsctl apply\" declares its topology:", specFile)
	out, err := s.rsctl("apply")
	if err != nil {
		return err
	}
	say("%s", indent(out))

	say("2. A dozen orders, sent by \"rsctl publish --exchange shop …\".")
	for _, o := range orders {
		if _, err := s.rsctl("publish", "--exchange", "shop", "--routing-key", o.key, "--id", o.id, "--body", o.body); err != nil {
			return err
		}
	}

	say("\n3. \"rsctl run --drain\" calls the handlers until the queues are empty:\n   a shell script, %s and an HTTP server.", s.chargeWith())
	began := time.Now()
	if _, err := s.rsctl("run", "--drain"); err != nil {
		return err
	}
	say("   Done in %.1f s.", time.Since(began).Seconds())
	return s.report()
}

// report prints what happened. The server moves a spent quorum message a moment
// after it was rejected, so it looks again while something is missing.
func (s stage) report() error {
	seen := newSeen()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if err := seen.look(s.url, s.journal); err != nil {
			return err
		}
		if len(seen.wrong()) == 0 || time.Now().After(end) || s.ctx.Err() != nil {
			break
		}
	}
	say("\n4. How every message ended, and what lies where:\n")
	seen.print(os.Stdout)
	if wrong := seen.wrong(); len(wrong) > 0 {
		return fmt.Errorf("not as it must be:\n  %s", strings.Join(wrong, "\n  "))
	}
	say(`
Everything ended as the spec says, and nothing is left behind. Try next:
  make build
  bin/rsctl -f %[1]s explain orders   # what each outcome becomes, and why
  bin/rsctl init                                # a commented queues.yaml of your own`, specFile)
	return nil
}

func (s stage) chargeWith() string {
	for _, line := range s.env {
		if name, ok := strings.CutPrefix(line, "CHARGE_WITH="); ok {
			return map[string]string{"python3": "a Python program", "node": "a Node program", "sh": "another shell script"}[name]
		}
	}
	return "a program"
}

// rsctl runs the product to its end and returns what it printed as its result.
func (s stage) rsctl(args ...string) (string, error) {
	cmd := s.command(s.binary, append([]string{"-f", specFile}, args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("rsctl %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// command ends with a SIGTERM when the demo is interrupted, so that rsctl can
// stop its handlers.
func (s stage) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, name, args...)
	cmd.Env = s.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func indent(text string) string {
	return "     " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n     ") + "\n"
}
