package rabbit

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// A guard is a shell that waits for our end of a pipe to close, which happens
// when we say so and when our process ends in any way, SIGKILL included. Then it
// kills the process groups that are still registered and runs a last command.
//
// Normal stops go the same way, so the crash path is the path every test takes.
type guard struct {
	mu   sync.Mutex
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

// guardScript reads "+PID" and "-PID" lines; its arguments are the last command.
const guardScript = `
trap '' HUP INT TERM
groups=' '
while read -r line; do
  pid=${line#?}
  case $line in
    +*) groups="$groups$pid " ;;
    -*) groups="${groups%% $pid *} ${groups#* $pid }" ;;
  esac
done
for pid in $groups; do kill -s KILL -- "-$pid" 2>/dev/null; done
"$@"
`

// newGuard starts a guard that runs last at the end.
func newGuard(last ...string) (*guard, error) {
	cmd := exec.Command("sh", append([]string{"-c", guardScript, "rsctl-e2e-guard"}, last...)...)
	cmd.SysProcAttr = ownSession()
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return &guard{pipe: pipe, cmd: cmd}, nil
}

func (g *guard) add(pid int) error    { return g.say("+", pid) }
func (g *guard) remove(pid int) error { return g.say("-", pid) }

func (g *guard) say(op string, pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := fmt.Fprintf(g.pipe, "%s%d\n", op, pid)
	return err
}

// close lets the guard do its work and waits for it.
func (g *guard) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipe.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("clean up (%s): %w", strings.Join(g.cmd.Args[4:], " "), err)
	}
	return nil
}
