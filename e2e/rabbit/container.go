package rabbit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// images names the container image of a series; 3.10 has no maintained one, and
// 3.13 behaves alike in everything the tests ask.
var images = map[string]string{
	"3.10":    "rabbitmq:3.13-management",
	"4.0":     "rabbitmq:4.0-management",
	"4.3":     "rabbitmq:4.3-management",
	Installed: "rabbitmq:4.3-management",
}

// engineAnswers reports whether a container engine runs, not only its client.
func engineAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Run() == nil
}

// ErrNotInContainer is wrapped by the error of [Start] when only a container
// engine is there and something was asked for that a container cannot do.
var ErrNotInContainer = errors.New("needs RabbitMQ on this machine, not in a container")

// container provides nodes that are containers of an image.
type container struct{ image string }

func (c container) prepare(ctx context.Context, n int, o Options) (*Cluster, error) {
	if n > 1 {
		return nil, fmt.Errorf("a cluster %w; containers are started singly", ErrNotInContainer)
	}
	if slices.Contains(o.Plugins, DelayedMessage) {
		return nil, fmt.Errorf("%s, which is built from source, %w", DelayedMessage, ErrNotInContainer)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	name := randomName("rsctl-e2e-")
	g, err := newGuard("docker", "rm", "--force", "--volumes", name)
	if err != nil {
		return nil, err
	}
	o.progress("starting a container of %s", c.image)
	if err := c.create(ctx, name, ports, o); err != nil {
		return nil, errors.Join(err, g.close())
	}
	d := &docker{name: name, guard: g, done: make(chan struct{})}
	cluster := &Cluster{close: g.close}
	cluster.Nodes = []*Node{{
		Name:          "rabbit@" + name,
		URL:           fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", ports[0]),
		ManagementURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		engine:        d,
		cluster:       cluster,
	}}
	return cluster, nil
}

// create makes the container and copies its settings in, which also works with
// an engine on another machine's file system.
func (c container) create(ctx context.Context, name string, ports []int, o Options) error {
	if err := run(ctx, "docker", "create", "--name", name, "--hostname", name,
		"-p", fmt.Sprintf("127.0.0.1:%d:5672", ports[0]),
		"-p", fmt.Sprintf("127.0.0.1:%d:15672", ports[1]), c.image); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rsctl-container-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var conf strings.Builder
	for _, key := range slices.Sorted(maps.Keys(o.Config)) {
		fmt.Fprintf(&conf, "%s = %s\n", key, o.Config[key])
	}
	plugins := append([]string{"rabbitmq_management", "rabbitmq_prometheus"}, o.Plugins...)
	for _, f := range []struct{ to, text string }{
		{"/etc/rabbitmq/conf.d/90-rsctl.conf", conf.String()},
		{"/etc/rabbitmq/advanced.config", o.advanced()},
		{"/etc/rabbitmq/enabled_plugins", "[" + strings.Join(plugins, ",") + "].\n"},
	} {
		from := filepath.Join(dir, filepath.Base(f.to))
		if err := os.WriteFile(from, []byte(f.text), 0o644); err != nil {
			return err
		}
		if err := run(ctx, "docker", "cp", from, name+":"+f.to); err != nil {
			return err
		}
	}
	return nil
}

// docker is one server run as a container.
type docker struct {
	name  string
	guard *guard
	done  chan struct{} // never closed: a container that ends shows in probe
}

func (d *docker) start() error { return run(context.Background(), "docker", "start", d.name) }

func (d *docker) stop() error {
	return run(context.Background(), "docker", "stop", "-t", "30", d.name)
}

func (d *docker) kill() error {
	return run(context.Background(), "docker", "kill", "--signal", "KILL", d.name)
}

// discard leaves it to the guard, which removes the container by force.
func (d *docker) discard() error { return nil }

func (d *docker) ended() <-chan struct{} { return d.done }
func (d *docker) attach(pid int) error   { return d.guard.add(pid) }

func (d *docker) ctl(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"exec", d.name, "rabbitmqctl", "-q"}, args...)
	return exec.CommandContext(ctx, "docker", args...)
}

func (d *docker) logTail() string {
	out, _ := exec.Command("docker", "logs", "--tail", "40", d.name).CombinedOutput()
	return string(out)
}
