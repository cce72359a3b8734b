package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const killerSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: quorum
    max_attempts: 3
    dead_letter: orders.dead
    concurrency: 4
    prefetch: 20
    handler: {exec: [./killer.sh]}
`

// killerHook kills its rsctl when it gets the killer.
const killerHook = `#!/bin/sh
if [ "$RSCTL_MESSAGE_ID" = killer ]; then kill -9 $PPID; exit; fi
echo "$RSCTL_MESSAGE_ID" >>"$DONE"
`

// withKiller is 19 good messages with a killer at a place among them.
func withKiller(place int) []amqp.Publishing {
	messages := numbered(19)
	return slices.Insert(messages, place, amqp.Publishing{MessageId: "killer", DeliveryMode: amqp.Persistent})
}

func TestAMessageThatKillsItsProcessTakesNoneAlong(t *testing.T) {
	t.Parallel()
	for _, place := range []int{0, 7, 19} {
		t.Run(fmt.Sprintf("at place %d", place), func(t *testing.T) {
			t.Parallel()
			b := harness.NewBroker(t)
			file := harness.Spec(t, killerSpec, map[string]string{"killer.sh": killerHook})
			done := filepath.Join(t.TempDir(), "done")
			env := []string{"DONE=" + done}
			b.MustRsctl(nil, "-f", file, "apply")
			b.Publish("", "orders", withKiller(place)...)

			for i := range 3 {
				p := b.StartRsctl(env, "-f", file, "run")
				harness.Eventually(t, "a death, or the end of the killer", func() bool { return p.Ended() || b.Ready("orders.dead") > 0 })
				if !p.Ended() {
					t.Logf("the killer was given up after %d deaths", i)
					p.Kill()
					break
				}
				if code := p.Wait(t); code != -1 {
					t.Fatalf("run %d ended with code %d, not by a signal:\n%s", i+1, code, p.Output())
				}
			}
			b.MustRsctl(env, "-f", file, "run", "--drain")
			if dead := harness.IDs(b.TakeN("orders.dead", 1)); dead[0] != "killer" {
				t.Errorf("dead-lettered is %q, want the killer", dead)
			}
			b.TakeN("orders.dead", 0)
			good := linesOf(t, done)
			slices.Sort(good)
			if n := len(slices.Compact(good)); n != 19 || b.Ready("orders") != 0 {
				t.Errorf("%d good messages were handled and %d are left, want 19 and 0", n, b.Ready("orders"))
			}
		})
	}
}

// Several processes share the queue, and each is started again when it dies.
func TestAMessageThatKillsOneProcessAfterTheOtherTakesNoneAlong(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	file := harness.Spec(t, killerSpec, map[string]string{"killer.sh": killerHook})
	done := filepath.Join(t.TempDir(), "done")
	env := []string{"DONE=" + done}
	b.MustRsctl(nil, "-f", file, "apply")
	b.Publish("", "orders", bodied("warm-up"))
	var processes []*harness.Process
	for range 3 {
		processes = append(processes, b.StartRsctl(env, "-f", file, "run"))
	}
	harness.Eventually(t, "the first message", func() bool { return len(linesOf(t, done)) == 1 })
	b.Publish("", "orders", withKiller(3)...)
	for i, p := range processes {
		if code := p.Wait(t); code != -1 {
			t.Fatalf("process %d ended with code %d, not by a signal:\n%s", i+1, code, p.Output())
		}
	}
	b.MustRsctl(env, "-f", file, "run", "--drain")
	var dead []string
	harness.Eventually(t, "the killer to be dead-lettered", func() bool {
		dead = append(dead, harness.IDs(b.Take("orders.dead"))...)
		return slices.Contains(dead, "killer")
	})
	// Before 4.3 what another process has prefetched cannot be handed back for nothing,
	// and a process that is at work does not slow down for suspects.
	if b.AtLeast(4, 3) && len(dead) != 1 {
		t.Errorf("dead-lettered are %q, want the killer only", dead)
	}
	good := slices.DeleteFunc(append(linesOf(t, done), dead...), func(id string) bool { return id == "killer" })
	slices.Sort(good)
	if n := len(slices.Compact(good)); n != 19+1 || b.Ready("orders") != 0 {
		t.Errorf("%d good messages have ended and %d are left, want 20 and 0", n, b.Ready("orders"))
	}
}
