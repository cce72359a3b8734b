package pidone

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/proctest"
)

// asInit makes the re-executed test binary run the shell script in it as
// process 1 would, or, when it is empty, a program that says which signals it
// gets.
const (
	asInit = "PIDONE_TEST_SCRIPT"
	sayer  = "sayer" // the name of that program
)

func TestMain(m *testing.M) {
	script, ok := os.LookupEnv(asInit)
	if !ok {
		os.Exit(m.Run())
	}
	if os.Args[0] == sayer {
		saySignals()
	}
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	path, argv := "/bin/sh", []string{"sh", "-c", script}
	if script == "" {
		path, argv = "/proc/self/exe", []string{sayer}
	}
	code, err := Run(path, argv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	os.Exit(code)
}

// saySignals prints each signal it gets, and ends with the exit code 7 at the
// end of its input.
func saySignals() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn()...)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(signals)
	}()
	fmt.Println("ready")
	for s := range signals {
		fmt.Println(unix.SignalName(s.(syscall.Signal)))
	}
	os.Exit(7)
}

// adoptOrphans gives a process the children that process 1 gets, where it is
// not allowed to be process 1.
func adoptOrphans() error {
	if os.Getpid() == 1 {
		return nil
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// initProcess is a test binary in which Run runs a script.
type initProcess struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startInit starts it as process 1 of a namespace, or else as the one that
// adopts orphans.
func startInit(t *testing.T, script string) *initProcess {
	t.Helper()
	for _, flags := range []uintptr{syscall.CLONE_NEWPID, 0} {
		p := &initProcess{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
		p.Env = append(os.Environ(), asInit+"="+script)
		p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		p.Stderr = os.Stderr
		var err error
		if p.in, err = p.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.lines = bufio.NewScanner(out)
		if err = p.Start(); err == nil {
			t.Cleanup(func() { p.Process.Kill() })
			return p
		}
		if flags == 0 {
			t.Fatal(err)
		}
	}
	return nil
}

func (p *initProcess) wantLine(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("got the line %q (%v), want %q", p.lines.Text(), p.lines.Err(), want)
	}
}

// wantEnd reads what is left of the output, which must be nothing, and compares
// the exit code.
func (p *initProcess) wantEnd(t *testing.T, code int) {
	t.Helper()
	for p.lines.Scan() {
		t.Errorf("got the line %q as well", p.lines.Text())
	}
	_ = p.Wait() // the exit code says it all
	if got := p.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
}

func TestOrphansAreCollected(t *testing.T) {
	t.Parallel()
	p := startInit(t, `i=0
while [ $i -lt 200 ]; do (sh -c 'exit 3' & sh -c 'kill -9 $$' &) 2>/dev/null; i=$((i+1)); done
echo abandoned
read x`)
	p.wantLine(t, "abandoned")
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	giveUp := time.After(5 * time.Minute)
	for left := ""; left != "S"; left = strings.Join(proctest.Children(t, p.Process.Pid), "") { // the script, which waits
		select {
		case <-look.C:
		case <-giveUp:
			t.Fatalf("%d children are left, among them %d that nobody waits for", len(left), strings.Count(left, "Z"))
		}
	}
	p.in.Close()
	p.wantEnd(t, 1) // of read, at the end of the input
}

func TestTheExitCodePassesThrough(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0":              0,
		"exit 3":              3,
		"(exit 4) & exit 255": 255,
		"kill -9 $$":          128 + 9,
		"kill -TERM $$":       128 + 15,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			startInit(t, script).wantEnd(t, want)
		})
	}
}

func TestEachSignalReachesTheProgramOnce(t *testing.T) {
	t.Parallel()
	p := startInit(t, "")
	p.wantLine(t, "ready")
	for _, s := range passedOn() {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		p.wantLine(t, unix.SignalName(s.(syscall.Signal)))
	}
	p.in.Close()
	p.wantEnd(t, 7)
}

func TestAProgramThatCannotBeStartedIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Run("/no/such/program", []string{"program"}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("Run() = %v, want ENOENT", err)
	}
}
