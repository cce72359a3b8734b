package rabbit

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a server may take to stop before it is killed.
const stopGrace = 30 * time.Second

// newNode writes the files of one node.
func (s *site) newNode(name string, o Options) (*Node, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	n := &native{site: s, name: name + "@localhost", dir: filepath.Join(s.dir, name)}
	seen := filepath.Join(s.place.inside(s.dir), name)
	n.env = append(s.env(),
		"RABBITMQ_NODENAME="+n.name,
		"RABBITMQ_CONFIG_FILE="+seen+"/rabbitmq.conf",
		"RABBITMQ_CONF_ENV_FILE="+seen+"/env.conf",
		"RABBITMQ_ADVANCED_CONFIG_FILE="+seen+"/advanced.config",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+seen+"/enabled_plugins",
		"RABBITMQ_MNESIA_BASE="+seen+"/data",
		"RABBITMQ_LOG_BASE="+seen+"/log",
		"RABBITMQ_PID_FILE="+seen+"/pid",
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", ports[2]),
		// Makes the start script replace itself by the Erlang machine, which
		// stops cleanly on SIGTERM; no shell stays in between.
		"RUNNING_UNDER_SYSTEMD=true",
	)
	if err := n.write(ports[0], ports[1], o); err != nil {
		return nil, err
	}
	return &Node{
		Name:          n.name,
		URL:           fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", ports[0]),
		ManagementURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		engine:        n,
	}, nil
}

func (n *native) write(amqpPort, managementPort int, o Options) error {
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return err
	}
	plugins := append([]string{"rabbitmq_management"}, o.Plugins...)
	if slices.Contains(plugins, DelayedMessage) {
		if err := n.buildDelayedMessage(); err != nil {
			return err
		}
	}
	conf := map[string]string{
		"listeners.tcp.1":     fmt.Sprintf("127.0.0.1:%d", amqpPort),
		"management.tcp.ip":   "127.0.0.1",
		"management.tcp.port": fmt.Sprint(managementPort),
	}
	maps.Copy(conf, o.Config)
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&lines, "%s = %s\n", key, conf[key])
	}
	files := map[string]string{
		"rabbitmq.conf":   lines.String(),
		"env.conf":        "",
		"advanced.config": o.advanced(),
		"enabled_plugins": "[" + strings.Join(plugins, ",") + "].\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (n *native) start() error {
	out, err := os.Create(filepath.Join(n.dir, "output"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := n.site.place.command(n.site.dir, n.env, n.site.place.bin+"/rabbitmq-server")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start rabbitmq-server: %w", err)
	}
	done := make(chan struct{})
	n.cmd, n.done = cmd, done
	go func() {
		defer close(done)
		cmd.Wait() //nolint:errcheck // how it ended is in its log
	}()
	return n.site.guard.add(cmd.Process.Pid)
}

func (n *native) ended() <-chan struct{} { return n.done }

// stop asks the server to stop and kills it when it does not.
func (n *native) stop() error {
	if n.cmd == nil {
		return nil
	}
	err := n.signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(stopGrace):
		return errors.Join(err, n.kill())
	}
	return errors.Join(err, n.forget())
}

// kill ends the server without a warning.
func (n *native) kill() error {
	if n.cmd == nil {
		return nil
	}
	err := n.signal(syscall.SIGKILL)
	<-n.done
	return errors.Join(err, n.forget())
}

// discard does not wait for a clean stop, which takes 3.10 six seconds.
func (n *native) discard() error { return n.kill() }

// signal reaches the whole group; one that has ended is no error.
func (n *native) signal(sig syscall.Signal) error {
	if err := syscall.Kill(-n.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// forget takes an ended server off the guard's list, before its number is
// given to another process.
func (n *native) forget() error {
	pid := n.cmd.Process.Pid
	n.cmd = nil
	return n.site.guard.remove(pid)
}
