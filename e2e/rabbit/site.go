package rabbit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A site is what the nodes of one cluster share: a folder, a cookie, an epmd
// (Erlang finds nodes through the epmd on one port) and the guard that removes
// it all.
type site struct {
	place place
	dir   string
	epmd  int
	guard *guard
}

// prepare makes n nodes in a new folder.
func (p place) prepare(_ context.Context, n int, o Options) (*Cluster, error) {
	o.progress("starting a private RabbitMQ %s", cmp.Or(p.version, o.Series))
	s, err := newSite(p)
	if err != nil {
		return nil, err
	}
	c := &Cluster{close: s.guard.close}
	for i := range n {
		node, err := s.newNode(fmt.Sprintf("node%d", i+1), o)
		if err != nil {
			s.guard.close()
			return nil, err
		}
		node.cluster = c
		c.Nodes = append(c.Nodes, node)
	}
	return c, nil
}

func newSite(p place) (*site, error) {
	dir, err := os.MkdirTemp("", "rsctl-rabbit-")
	if err != nil {
		return nil, err
	}
	g, err := newGuard("rm", "-rf", "--", dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	s := &site{place: p, dir: dir, guard: g}
	if err := s.fill(); err != nil {
		g.close()
		return nil, err
	}
	return s, nil
}

// fill writes the cookie and starts the port mapper.
func (s *site) fill() error {
	home := filepath.Join(s.dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	// A cookie that others may read stops the node.
	cookie := []byte(randomName("cookie"))
	if err := os.WriteFile(filepath.Join(home, ".erlang.cookie"), cookie, 0o400); err != nil {
		return err
	}
	return s.startEpmd()
}

// startEpmd runs epmd in the foreground, so that it is ours to kill. An epmd
// that Erlang starts by itself outlives the node.
func (s *site) startEpmd() error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	s.epmd = ports[0]
	path, err := s.place.epmd()
	if err != nil {
		return err
	}
	cmd := s.place.command(s.dir, s.env(), path)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start epmd: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() //nolint:errcheck // the guard kills it; this only reaps it
	}()
	return errors.Join(s.guard.add(cmd.Process.Pid), s.awaitEpmd(ended))
}

// awaitEpmd returns once the port mapper listens: a node that starts before it
// does not start.
func (s *site) awaitEpmd(ended <-chan struct{}) error {
	for began := time.Now(); ; {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.epmd))
		if err == nil {
			return conn.Close()
		}
		if time.Since(began) > startTimeout {
			return fmt.Errorf("epmd does not listen: %w", err)
		}
		select {
		case <-ended:
			return errors.New("epmd ended while it started")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// env is the whole environment of every program of the site, so that nothing of
// the machine's own RabbitMQ reaches it.
func (s *site) env() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin",
		"LANG=C.UTF-8",
		"HOME=" + filepath.Join(s.place.inside(s.dir), "home"),
		fmt.Sprintf("ERL_EPMD_PORT=%d", s.epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		// Ours is running; a second one would be nobody's to stop.
		"ERL_FLAGS=-start_epmd false",
	}
}

// native is one server run as processes of this machine.
type native struct {
	site *site
	name string // Erlang node name
	dir  string // of this node, inside site.dir
	env  []string

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// ctl returns the rabbitmqctl call; the context ends it.
func (n *native) ctl(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"-q", "-n", n.name}, args...)
	made := n.site.place.command(n.site.dir, n.env, n.site.place.bin+"/rabbitmqctl", args...)
	cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = made.Env, made.Dir, made.SysProcAttr
	return cmd
}

func (n *native) attach(pid int) error { return n.site.guard.add(pid) }

// logTail returns the end of the server's newest messages.
func (n *native) logTail() string {
	var all []string
	files, _ := filepath.Glob(filepath.Join(n.dir, "log", "*"))
	for _, f := range append(files, filepath.Join(n.dir, "output")) {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		all = append(all, lines[max(0, len(lines)-20):]...)
	}
	return strings.Join(all, "\n")
}
