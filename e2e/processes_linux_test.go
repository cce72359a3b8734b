package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const processesSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: quorum
    max_attempts: 2
    dead_letter: orders.dead
    concurrency: 64
    handler: {exec: [sleep, "0.2"]}
`

// A process with more calls at a time than processes it may start goes on, and
// spends no attempt on that. What it may have, threads are counted among.
func TestWithoutProcessesNoMessageIsSpent(t *testing.T) {
	t.Parallel()
	const n, allowed = 80, 45
	b := harness.NewBroker(t)
	b.MustRsctl(nil, "-f", harness.Spec(t, processesSpec, nil), "apply")
	for range n {
		b.Publish("", "orders", amqp.Publishing{Body: []byte("x")})
	}
	user := os.Getuid()
	if user == 0 { // has no such limit
		user = 64_033
	}
	dir := readableByAll(t, harness.Binary(t), processesSpec)
	// Some shells call it -u, others -p.
	const limited = `if (ulimit -u "$0") 2>/dev/null; then ulimit -u "$0"; else ulimit -p "$0"; fi && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", limited, strconv.Itoa(tasksOf(t, user)+allowed),
		"./rsctl", "-f", "queues.yaml", "run", "--drain", "--listen", "")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "AMQP_URL="+b.URL)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.8000s", err, out)
	}
	if dead, left := b.Ready("orders.dead"), b.Ready("orders"); dead != 0 || left != 0 || strings.Contains(string(out), "handler failed") {
		t.Errorf("%d of %d messages are dead-lettered, and %d are left\n%s", dead, n, left, out)
	}
	if !strings.Contains(string(out), "raise the limit of processes") {
		t.Errorf("the log does not name the limit\n%s", out)
	}
}

// readableByAll is a folder with the program and the spec that any user may read:
// those of a test belong to the user who runs it.
func readableByAll(t *testing.T, program, spec string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rsctl-e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"rsctl": binary, "queues.yaml": []byte(spec)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tasksOf counts the threads of all processes of a user.
func tasksOf(t *testing.T, user int) int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range processes {
		info, err := os.Stat(p)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(user) {
			continue // it has ended, or is somebody else's
		}
		tasks, _ := filepath.Glob(p + "/task/*")
		n += len(tasks)
	}
	return n
}
