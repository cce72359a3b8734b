package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
	"github.com/rsctl/rsctl/e2e/rabbit"
)

const outliveSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - {name: classic, type: classic, delay: dlx_ttl, handler: {exec: [./hook.sh]}}
  - {name: quorum, type: quorum, delay: dlx_ttl, handler: {exec: [./hook.sh]}}
  - {name: ladder, type: quorum, delay: levels, handler: {exec: [./hook.sh]}}
`

const pluginSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - {name: one, type: classic, handler: {exec: [./hook.sh]}}
  - {name: two, type: classic, delay: plugin_dme, handler: {exec: [./hook.sh]}}
  - {name: three, type: classic, handler: {exec: [./hook.sh]}}
`

// TestOnANodeOfItsOwn holds what needs a node without plugins, or one that may
// be restarted.
func TestOnANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	node, err := rabbit.Start(t.Context(), rabbit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a missing plugin is named, and hides nothing else", func(t *testing.T) {
		wantPluginNamed(t, harness.At(t, node.URL, node.ManagementURL))
	})
	t.Run("a waiting copy survives a restart of the broker under a run", func(t *testing.T) {
		wantCopyToOutlive(t, node)
	})
}

// wantPluginNamed holds each command against a queue whose exchange type the
// broker lacks, between two that it has.
func wantPluginNamed(t *testing.T, b *harness.Broker) {
	t.Helper()
	file := harness.Spec(t, pluginSpec, map[string]string{"hook.sh": scripted})
	for _, tt := range []struct {
		command string
		others  string // what is said of the other queues
	}{
		{"apply", "created"},
		{"check", "ok"},
		{"run", ""},
	} {
		r := b.Rsctl(nil, "-f", file, tt.command)
		text := strings.Join(strings.Fields(r.Stdout+strings.ReplaceAll(r.Stderr, `\"`, `"`)), " ") // run logs JSON
		if r.Code != 1 {
			t.Errorf("%s: ended with %d, want 1", tt.command, r.Code)
		}
		if !strings.Contains(text, `"x-delayed-message" is not available`) || !strings.Contains(text, "two.delay") {
			t.Errorf("%s does not name the missing type and where it is needed:\n%s", tt.command, text)
		}
		if tt.others == "" {
			continue
		}
		for _, q := range []string{"one", "three"} {
			if !strings.Contains(text, fmt.Sprintf("queue %q %s", q, tt.others)) {
				t.Errorf("%s does not say that queue %q is %s:\n%s", tt.command, q, tt.others, r.Stdout)
			}
		}
	}
}

func wantCopyToOutlive(t *testing.T, node *rabbit.Node) {
	t.Helper()
	b := harness.At(t, node.URL, node.ManagementURL)
	s := newStation(t, b, outliveSpec)
	queues := []string{"classic", "quorum", "ladder"}
	run := s.run()
	for i, q := range queues {
		s.send(q, "m", "retry_after 16s", "ack")
		s.runs(q, "m", 1)
		waiting := []string{"classic.retry", "quorum.retry", "rsctl.v1.level-04"}[i]
		harness.Eventually(t, "a copy in "+waiting, func() bool { return b.Ready(waiting) == 1 })
	}
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		runs := s.runs(q, "m", 2)
		if gap := runs[1].at.Sub(runs[0].at); runs[1].Attempt != 2 || gap < 16*time.Second {
			t.Errorf("%s came back as attempt %d after %v, want attempt 2 after 16s or more", q, runs[1].Attempt, gap)
		} else {
			t.Logf("%s came back after %v", q, gap.Round(time.Millisecond))
		}
	}
	stop(t, run)
}
