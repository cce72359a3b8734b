package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runProcess is "rsctl run" of one queue, whose log goes where the test says.
type runProcess struct {
	*exec.Cmd
	dir, queue string
}

// newService applies a spec with the queue's handler and keys; start starts it.
func newService(t *testing.T, broker, keys string, args ...string) *runProcess {
	t.Helper()
	dir, queue := t.TempDir(), "cli-stop-"+strings.ToLower(rand.Text()[:8])
	text := fmt.Sprintf("version: 1\nbroker: {url: %q}\ndeclare_topology: true\nqueues:\n  - {name: %s, type: classic, %s}\n", broker, queue, keys)
	file := filepath.Join(dir, "queues.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runMain(t, "", "-f", file, "--url", brokerURL(t), "apply", "--timeout", patience.String()); code != exitOK {
		t.Fatalf("apply: %s", errs)
	}
	t.Cleanup(func() { deleteQueue(t, queue) })
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	s := &runProcess{exec.CommandContext(ctx, "rsctl", append([]string{"-f", file, "run", "--listen", ""}, args...)...), dir, queue}
	s.Dir = dir
	return s
}

func (s *runProcess) publish(t *testing.T, n int) {
	t.Helper()
	file := filepath.Join(s.dir, "queues.yaml")
	if code, _, errs := runMain(t, "", "-f", file, "--url", brokerURL(t), "publish", s.queue, "--body", "x", "--count", itoa(n), "--timeout", patience.String()); code != exitOK {
		t.Fatalf("publish: %s", errs)
	}
}

// start starts the service with its log on a pipe and returns the end to read.
func (s *runProcess) start(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.Stderr = w
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() { _ = s.Process.Kill(); _ = r.Close() })
	return r
}

func (s *runProcess) runs(name string) int {
	data, _ := os.ReadFile(filepath.Join(s.dir, name)) // it comes with the first run
	return strings.Count(string(data), "\n")
}

func (s *runProcess) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait returns the exit code; a signal's is -1.
func (s *runProcess) wait() int {
	_ = s.Wait() // the exit code says it all
	return s.ProcessState.ExitCode()
}

func wantPoll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("waited %v for %s", patience, what)
	}
}

func TestADeadReaderOfTheLogCostsTheLogAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newService(t, brokerURL(t), `handler: {exec: [sh, -c, "echo talk; echo >>runs; exit 1"]}, max_attempts: 2, concurrency: 2`)
	log := s.start(t)
	s.publish(t, 1)
	wantPoll(t, "both attempts", func() bool { return s.runs("runs") == 2 })
	_ = log.Close() // from now on every line is a broken pipe
	s.publish(t, 5)
	wantPoll(t, "messages to be handled without a log", func() bool { return s.runs("runs") == 12 })
	s.signal(t, syscall.SIGINT)
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d (%v), want a clean drain", code, s.ProcessState)
	}
}

func TestHandlersAreEndedByABrokenPipeAsUsual(t *testing.T) {
	t.Parallel()
	s := newService(t, brokerURL(t), `handler: {exec: [sh, -c, "kill -PIPE $$; echo >>survived"]}, max_attempts: 1`, "--drain", "--log-format", "json")
	s.publish(t, 1)
	log := s.start(t)
	text, _ := io.ReadAll(log)
	if code := s.wait(); code != exitOK || s.runs("survived") > 0 || !strings.Contains(string(text), "PIPE") {
		t.Errorf("exit code %d, %d runs outlived the signal:\n%s", code, s.runs("survived"), text)
	}
}

func TestAStuckReaderOfTheLogStopsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, brokerURL(t), `handler: {exec: [sh, -c, "head -c 300000 /dev/zero | tr '\\0' x | fold -w 1000; echo >>runs; exit 0"]}, concurrency: 2`)
	s.start(t) // nobody reads, and a pipe holds 64 KiB
	s.publish(t, 20)
	wantPoll(t, "messages to be handled although nobody reads the log", func() bool { return s.runs("runs") == 20 })
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d (%v), want a clean drain", code, s.ProcessState)
	}
}

func TestEverySignalThatAsksForAnEndDrains(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newService(t, brokerURL(t), `handler: {exec: [sh, -c, "echo >>runs; while ! test -e go; do sleep 0.05; done; echo >>finished"]}`)
			log := bufio.NewScanner(s.start(t))
			s.publish(t, 1)
			wantPoll(t, "the handler to run", func() bool { return s.runs("runs") == 1 })
			for _, other := range harmless {
				s.signal(t, other)
			}
			s.signal(t, sig)
			s.signal(t, sig) // within a moment: the same stop
			for log.Scan() {
				var line struct{ Msg string }
				if err := json.Unmarshal(log.Bytes(), &line); err != nil {
					t.Errorf("a line of the log is no JSON: %s", log.Text())
				}
				if strings.HasSuffix(line.Msg, "draining; once more stops at once") {
					_ = os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600)
				}
			}
			if code := s.wait(); code != exitOK || s.runs("finished") != 1 {
				t.Errorf("exit code %d (%v), %d handlers finished; want a clean drain", code, s.ProcessState, s.runs("finished"))
			}
		})
	}
}

func TestTheSecondSignalEndsWhateverBrokerAndHandlersDo(t *testing.T) {
	t.Parallel()
	r, relayed := relayBroker(t)
	s := newService(t, relayed, `handler: {exec: [sh, -c, "trap '' TERM; echo >>runs; while :; do sleep 0.1; done"], kill_grace: 200ms}`)
	log := s.start(t)
	s.publish(t, 1)
	wantPoll(t, "the handler to run", func() bool { return s.runs("runs") == 1 })
	r.freeze()
	s.signal(t, syscall.SIGTERM)
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "draining; once more") {
	}
	began := time.Now()
	s.signal(t, syscall.SIGINT)
	rest, _ := io.ReadAll(log)
	code := s.wait()
	if took := time.Since(began); took > 10*time.Second { // 2.2 s; the machine may be busy, and without a bound it is 20 s and more
		t.Errorf("the end took %v", took)
	}
	if code != exitFailure || !strings.Contains(string(rest), "stopped before the drain was over") {
		t.Errorf("exit code %d (%v):\n%s", code, s.ProcessState, rest)
	}
}

func TestADrainThatTakesTooLongIsAFailure(t *testing.T) {
	t.Parallel()
	forever := `handler: {exec: [sh, -c, "while :; do sleep 0.1; done"], kill_grace: 100ms}`
	for _, tt := range []struct {
		name, keys, want string
		broker           string
		args             []string
	}{
		{"the shutdown timeout", forever, "stopped before the drain was over: shutdown timeout reached", "", []string{"--drain", "--timeout", "1s", "--shutdown-timeout", "200ms"}},
		{"--timeout", `handler: {exec: ["false"]}, rate: 1/h, breaker: {failures: 1, cooldown: 1h}`, "gave up after 1s (--timeout): the queues are not empty: queue ", "", []string{"--drain", "--timeout", "1s"}},
		{"a broker that never comes", forever, "gave up after 1s (--timeout): the queues are not empty: there is no connection to the broker", "amqp://127.0.0.1:1/", []string{"--drain", "--timeout", "1s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broker := tt.broker
			if broker == "" {
				broker = brokerURL(t)
			}
			s := newService(t, broker, tt.keys, tt.args...)
			s.publish(t, 3)
			text, _ := io.ReadAll(s.start(t))
			if code := s.wait(); code != exitFailure || !strings.Contains(string(text), tt.want) {
				t.Errorf("exit code %d:\n%s", code, text)
			}
		})
	}
}

func TestWishesToStop(t *testing.T) {
	t.Parallel()
	term, hup := syscall.SIGTERM, syscall.SIGHUP
	for _, tt := range []struct {
		first, second os.Signal
		after         time.Duration
		want          bool
	}{
		{term, term, 299 * time.Millisecond, false},
		{term, term, 300 * time.Millisecond, true},
		{term, os.Interrupt, 0, true},
		{term, hup, time.Millisecond, false}, // systemd with SendSIGHUP
		{term, hup, time.Second, true},
		{hup, term, time.Millisecond, true},
	} {
		var w wishes
		now := time.Now()
		if !w.count(tt.first, now) {
			t.Error("the first signal does not count")
		}
		if got := w.count(tt.second, now.Add(tt.after)); got != tt.want {
			t.Errorf("%v after %v and %v counts: %v", tt.second, tt.first, tt.after, got)
		}
	}
}

func TestHostileTextIsEscapedInTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		s := newService(t, brokerURL(t), `handler: {exec: [sh, -c, "exit 65"]}`, "--drain", "--log-format", format)
		file := filepath.Join(s.dir, "queues.yaml")
		id := "a\u202eb\u009b31mc\x7fd\u2028e"
		if code, _, errs := runMain(t, "", "-f", file, "publish", s.queue, "--body", "x", "--id", id, "--timeout", patience.String()); code != exitOK {
			t.Fatalf("publish: %s", errs)
		}
		text, _ := io.ReadAll(s.start(t))
		s.wait()
		if strings.ContainsAny(string(text), "\u202e\u009b\x7f\u2028") || !strings.Contains(string(text), `a\u202eb\u009b31mc`) {
			t.Errorf("%s: %s", format, text)
		}
	}
}
