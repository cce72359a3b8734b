package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const killSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: %s
    max_attempts: 3
    dead_letter: orders.dead
    concurrency: 16
    handler: {exec: [./flaky.sh]}
`

// flakyHook fails for about 3 of 10 messages.
const flakyHook = `#!/bin/sh
n=$(od -An -N1 -tu1 /dev/urandom)
echo "$RSCTL_MESSAGE_ID" >>"$RUNS"
[ "$n" -ge 77 ] || exit 75
echo "$RSCTL_MESSAGE_ID" >>"$DONE"
`

func TestKilledRunLosesNoMessage(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"classic", "quorum"} {
		t.Run(queueType+" queue", func(t *testing.T) {
			t.Parallel()
			const messages, kills = 2000, 5
			b := harness.NewBroker(t)
			file := harness.Spec(t, fmt.Sprintf(killSpec, queueType), map[string]string{"flaky.sh": flakyHook})
			dir := t.TempDir()
			runs, done := filepath.Join(dir, "runs"), filepath.Join(dir, "done")
			env := []string{"RUNS=" + runs, "DONE=" + done}
			b.MustRsctl(nil, "-f", file, "apply")
			b.Publish("", "orders", numbered(messages)...)

			for i := range kills {
				seen := len(linesOf(t, runs))
				p := b.StartRsctl(env, "-f", file, "run")
				harness.Eventually(t, fmt.Sprintf("handlers running before kill %d", i+1), func() bool {
					return len(linesOf(t, runs)) >= seen+messages/10
				})
				p.Kill()
			}
			b.MustRsctl(env, "-f", file, "run", "--drain")

			finished := map[string]bool{}
			for _, id := range linesOf(t, done) {
				finished[id] = true
			}
			acked, dead := len(finished), 0
			// The server moves a spent quorum message a moment after the reject.
			harness.Eventually(t, "the end of every message, which is an ack or a dead letter", func() bool {
				ids := harness.IDs(b.Take("orders.dead"))
				dead += len(ids)
				for _, id := range ids {
					finished[id] = true
				}
				return len(finished) == messages
			})
			if dead == 0 {
				t.Errorf("no message was dead-lettered; the handler did not fail at random")
			}
			if n := b.Ready("orders"); n != 0 {
				t.Errorf("orders still holds %d messages", n)
			}
			t.Logf("%d acked, %d dead-lettered, %d handler runs", acked, dead, len(linesOf(t, runs)))
		})
	}
}

func numbered(n int) []amqp.Publishing {
	messages := make([]amqp.Publishing, 0, n)
	for i := range n {
		messages = append(messages, amqp.Publishing{MessageId: fmt.Sprintf("m-%04d", i), DeliveryMode: amqp.Persistent})
	}
	return messages
}

// linesOf returns the complete lines of a file that may not be there yet.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	return lines[:len(lines)-1]
}
