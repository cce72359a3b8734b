package rabbit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestMain lets the test binary stand for a program that starts a node and is
// killed.
func TestMain(m *testing.M) {
	if os.Getenv("RSCTL_TEST_START_AND_WAIT") == "" {
		os.Exit(m.Run())
	}
	node, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	site := node.engine.(*native).site
	fmt.Println(site.epmd)
	fmt.Println(site.dir)
	select {}
}

func TestNodeKeepsItsDataOverARestartAndLeavesNothingAtTheEnd(t *testing.T) {
	t.Parallel()
	node, err := Start(t.Context(), Options{Config: map[string]string{"channel_max": "77"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Stop() })
	if series := os.Getenv("RSCTL_E2E_SERIES"); slices.Contains(Series(), series) && !strings.HasPrefix(node.Version, series+".") {
		t.Errorf("version = %q, want a %s", node.Version, series)
	}
	declareDurable(t, node, "kept")
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	queues, err := node.Ctl(t.Context(), "list_queues", "name", "--no-table-headers")
	if err != nil || queues != "kept" {
		t.Errorf("list_queues = %q, %v; want the durable queue", queues, err)
	}
	if err := node.Stop(); err != nil {
		t.Fatal(err)
	}
	site := node.engine.(*native).site
	wantNothingLeft(t, site.epmd, site.dir)
}

func TestClusterServesOnWhenOneNodeIsKilled(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(t.Context(), 3, Options{Config: map[string]string{"channel_max": "77"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	if err := c.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	declareDurable(t, c.Nodes[0], "kept")
	if err := c.Nodes[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	queues, err := c.Nodes[2].Ctl(t.Context(), "list_queues", "name", "--no-table-headers")
	if err != nil || queues != "kept" {
		t.Errorf("list_queues on the node that was away = %q, %v; want the queue declared meanwhile", queues, err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	site := c.Nodes[0].engine.(*native).site
	wantNothingLeft(t, site.epmd, site.dir)
}

func TestKilledProgramLeavesNoNodeBehind(t *testing.T) {
	t.Parallel()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "RSCTL_TEST_START_AND_WAIT=1")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	epmd, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatalf("the program said %q, want the port of its epmd", lines.Text())
	}
	lines.Scan()
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	program.Wait()
	wantNothingLeft(t, epmd, lines.Text())
}

func TestUnknownSeriesIsRefusedByName(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Series: "2.8"})
	if err == nil || !strings.Contains(err.Error(), `"2.8"`) || !strings.Contains(err.Error(), `"4.3"`) {
		t.Errorf("Start(2.8) = %v, want an error that names it and the known ones", err)
	}
}

func declareDurable(t *testing.T, node *Node, queue string) {
	t.Helper()
	conn, err := amqp.Dial(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.Config.ChannelMax; got != 77 {
		t.Errorf("channel_max = %d, want the configured 77", got)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

// wantNothingLeft looks for the folder and for processes of the site, which all
// know its port mapper. It waits a little: Erlang's helpers end when they see
// their pipe close.
func wantNothingLeft(t *testing.T, epmd int, dir string) {
	t.Helper()
	mark := fmt.Sprintf("ERL_EPMD_PORT=%d", epmd)
	var left []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = withEnv(mark)
		if _, err := os.Stat(dir); err == nil {
			left = append(left, dir)
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %q", left)
}

// withEnv returns the processes that have the line in their environment.
func withEnv(line string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.DeleteFunc(files, func(f string) bool {
		data, err := os.ReadFile(f)
		return err != nil || !slices.Contains(strings.Split(string(data), "\x00"), line)
	})
}
