// Withbroker runs a command with a private RabbitMQ:
//
//	go run ./e2e/withbroker [-series 4.0] [-delayed-message] -- COMMAND ARG…
//
// The command finds the node in RSCTL_AMQP_URL, RSCTL_MANAGEMENT_URL,
// RSCTL_BROKER_VERSION and RSCTL_E2E_SERIES. When RSCTL_AMQP_URL is already
// set, that broker is used and none is started. Signals reach the command, its
// exit status becomes ours, and the node is gone afterwards.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rsctl/rsctl/e2e/rabbit"
)

// exitBroken is our own status, apart from those a command usually has.
const exitBroken = 125

func main() {
	var o rabbit.Options
	flag.StringVar(&o.Series, "series", "", "RabbitMQ series: installed, "+strings.Join(rabbit.Series(), ", "))
	delayed := flag.Bool("delayed-message", false, "enable the stand-in for the delayed-message plugin")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "withbroker: give a command to run, for example: -- go test ./...")
		os.Exit(2)
	}
	if *delayed {
		o.Plugins = []string{rabbit.DelayedMessage}
	}
	o.Progress = func(line string) { say("%s", line) }
	code, err := run(o, flag.Args())
	if err != nil {
		say("%v", err)
	}
	os.Exit(code)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "withbroker: "+format+"\n", args...) }

// run returns the command's exit status. An error with the command's own
// failure would say nothing new, so there is none.
func run(o rabbit.Options, command []string) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	node, err := start(o, signals)
	if err != nil {
		return exitBroken, err
	}
	code, err := runCommand(node, command, signals)
	if node == nil {
		return code, err
	}
	if stopErr := node.Stop(); stopErr != nil {
		return exitBroken, errors.Join(err, stopErr)
	}
	return code, err
}

// start returns nil when the environment already names a broker. A signal ends
// the wait; the node's guard removes what was started.
func start(o rabbit.Options, signals <-chan os.Signal) (*rabbit.Node, error) {
	if os.Getenv("RSCTL_AMQP_URL") != "" {
		say("using the broker of RSCTL_AMQP_URL")
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	started := make(chan struct{})
	defer close(started)
	go func() {
		select {
		case s := <-signals:
			cancel(fmt.Errorf("stopped by %v", s))
		case <-started:
		}
	}()
	node, err := rabbit.Start(ctx, o)
	if errors.Is(err, rabbit.ErrNotInContainer) {
		say("%v; going on without, and tests that need it will fail", err)
		o.Plugins = nil
		node, err = rabbit.Start(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"RSCTL_AMQP_URL":       node.URL,
		"RSCTL_MANAGEMENT_URL": node.ManagementURL,
		"RSCTL_BROKER_VERSION": node.Version,
		"RSCTL_E2E_SERIES":     cmp.Or(o.Series, os.Getenv("RSCTL_E2E_SERIES"), rabbit.Installed),
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, errors.Join(err, node.Stop())
		}
	}
	return node, nil
}

// runCommand gives the command a process group of its own: a Ctrl-C on the
// terminal then reaches it once, through us, and nothing of it outlives us.
func runCommand(node *rabbit.Node, command []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	if node != nil {
		if err := node.Attach(cmd.Process.Pid); err != nil {
			return exitBroken, err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal)) //nolint:errcheck // it may just have ended
		case err := <-ended:
			return status(err)
		}
	}
}

// status turns how a command ended into an exit status, as a shell does.
func status(err error) (int, error) {
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return 0, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}
