package rabbit

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// startTimeout bounds one start; a loaded machine of two cores needs about 15 s.
const startTimeout = 5 * time.Minute

// A Node is one RabbitMQ server. Its methods are not safe for concurrent use,
// except Ctl.
type Node struct {
	Name          string // of the Erlang node
	URL           string // amqp://, the default virtual host, user guest
	ManagementURL string // http://, user guest
	Version       string // as the server says, for example "3.10.8"

	engine  engine
	cluster *Cluster
}

// An engine runs one server: as processes of this machine or as a container.
type engine interface {
	start() error
	stop() error    // as an operator would; returns when it has ended
	kill() error    // as a power cut would; returns when it has ended
	discard() error // whatever is fastest: nobody needs its data any more
	ended() <-chan struct{}
	ctl(ctx context.Context, args ...string) *exec.Cmd
	attach(pid int) error // end this process group when we end
	logTail() string      // the last lines the server wrote, for an error
}

// start returns when the node takes AMQP connections and management requests.
func (n *Node) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := n.engine.start(); err != nil {
		return err
	}
	for {
		err := n.probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.engine.ended():
			return fmt.Errorf("the node ended while it started:\n%s", n.engine.logTail())
		case <-ctx.Done():
			return fmt.Errorf("the node did not become ready: %w (last answer: %w)\n%s", context.Cause(ctx), err, n.engine.logTail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// probe asks both listeners once.
func (n *Node) probe(ctx context.Context) error {
	conn, err := amqp.Dial(n.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	n.Version, _ = conn.Properties["version"].(string)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.ManagementURL+"/api/overview", nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth("guest", "guest")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("management: %s", resp.Status)
	}
	return nil
}

// Ctl runs rabbitmqctl against the node and returns what it printed.
func (n *Node) Ctl(ctx context.Context, args ...string) (string, error) {
	cmd := n.engine.ctl(ctx, args...)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return text, nil
}

// Stop ends the node and, when it was started by [Start], removes every trace
// of it. A node of a cluster can be started again with Restart; [Cluster.Stop]
// removes the traces.
func (n *Node) Stop() error {
	if len(n.cluster.Nodes) == 1 {
		return n.cluster.Stop()
	}
	return n.engine.stop()
}

// Kill ends the node at once (SIGKILL), as a power cut would. Its data stay for
// Restart.
func (n *Node) Kill() error { return n.engine.kill() }

// Restart starts the node again on the same ports and data, stopping it first
// when it runs.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.engine.stop(); err != nil {
		return err
	}
	return n.start(ctx)
}

// Attach makes the node's guard kill the process group pid when this process
// ends before the node is stopped. It keeps a demo or a test run from leaving
// programs behind.
func (n *Node) Attach(pid int) error { return n.engine.attach(pid) }

// join makes n a member of first's cluster.
func (n *Node) join(ctx context.Context, first *Node) error {
	for _, args := range [][]string{{"stop_app"}, {"join_cluster", first.Name}, {"start_app"}} {
		if _, err := n.Ctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
