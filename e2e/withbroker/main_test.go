package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary stand for withbroker itself.
func TestMain(m *testing.M) {
	if os.Getenv("WITHBROKER_TEST_MAIN") != "" {
		os.Unsetenv("WITHBROKER_TEST_MAIN")
		main()
		return
	}
	os.Exit(m.Run())
}

// withBroker runs with a broker that is there already, so none is started.
func withBroker(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "WITHBROKER_TEST_MAIN=1", "RSCTL_AMQP_URL=amqp://somewhere/")
	return cmd
}

func TestStatusOfTheCommandBecomesOurs(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0":          0,
		"exit 7":          7,
		"kill -KILL $$":   128 + 9,
		"/does/not/exist": 127,
	} {
		cmd := withBroker("--", "sh", "-c", script)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s: %v, want status %d\n%s", script, err, want, out)
		}
	}
}

func TestGivenBrokerIsUsedAndNamed(t *testing.T) {
	t.Parallel()
	out, err := withBroker("--", "sh", "-c", "echo $RSCTL_AMQP_URL").CombinedOutput()
	if want := "withbroker: using the broker of RSCTL_AMQP_URL\namqp://somewhere/\n"; err != nil || string(out) != want {
		t.Errorf("printed %q, %v; want %q", out, err, want)
	}
}

func TestSignalReachesTheCommandOnceAndItsAnswerCounts(t *testing.T) {
	t.Parallel()
	const script = `trap 'n=$((n+1))' TERM; n=0; echo ready; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.2; exit $((40+n))`
	cmd := withBroker("--", "sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewReader(out).ReadString('\n') //nolint:errcheck // an early end shows in the status
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // the status is looked at
	if got := cmd.ProcessState.ExitCode(); got != 41 {
		t.Errorf("status = %d, want 41: one signal seen", got)
	}
}

func TestMissingCommandIsWrongUsage(t *testing.T) {
	t.Parallel()
	cmd := withBroker("-series", "4.0")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "-- go test") {
		t.Errorf("status %d, printed %q; want 2 and an example", cmd.ProcessState.ExitCode(), out)
	}
}
