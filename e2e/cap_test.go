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

const capSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
queues:
  - name: orders
    type: %s
    max_attempts: %d
    dead_letter: orders.dead
    handler: {exec: [./fail.sh]}
`

const failingHook = `#!/bin/sh
echo "$RSCTL_ATTEMPT" >>"$RUNS"
echo "nothing on the shelf" >&2
exit 75
`

func TestFailingMessageIsTriedExactlyMaxAttemptsTimesAndThenDeadLettered(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"classic", "quorum"} {
		for _, attempts := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s queue, max_attempts %d", queueType, attempts), func(t *testing.T) {
				t.Parallel()
				dead := runCapped(t, queueType, attempts)
				wantOriginal(t, dead)
				if queueType == "classic" {
					wantReason(t, dead, attempts)
				} else {
					wantDelivered(t, dead, "delivery_limit")
				}
			})
		}
	}
}

// runCapped sends one message to a queue whose hook always fails, holds the hook
// runs against attempts and returns the dead-lettered message.
func runCapped(t *testing.T, queueType string, attempts int) amqp.Delivery {
	t.Helper()
	b := harness.NewBroker(t)
	file := harness.Spec(t, fmt.Sprintf(capSpec, queueType, attempts), map[string]string{"fail.sh": failingHook})
	runs := filepath.Join(t.TempDir(), "runs")
	b.MustRsctl(nil, "-f", file, "apply")
	b.Publish("", "orders", amqp.Publishing{
		MessageId:     "order-1",
		CorrelationId: "basket-7",
		ContentType:   "application/json",
		DeliveryMode:  amqp.Persistent,
		Headers:       amqp.Table{"tenant": "north", "lines": int64(5_000_000_000)},
		Body:          []byte(`{"sku":"A-1"}`),
	})
	b.MustRsctl([]string{"RUNS=" + runs}, "-f", file, "run", "--drain")

	dead := b.TakeN("orders.dead", 1)[0]
	if n := b.Ready("orders"); n != 0 {
		t.Errorf("orders still holds %d messages", n)
	}
	data, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for n := range attempts {
		fmt.Fprintln(&want, n+1)
	}
	if string(data) != want.String() {
		t.Errorf("the handler saw the attempts %q, want %q", data, want.String())
	}
	return dead
}

func wantOriginal(t *testing.T, d amqp.Delivery) {
	t.Helper()
	got := fmt.Sprintf("%s %s %s %s %v %v", d.MessageId, d.CorrelationId, d.ContentType, d.Body, d.Headers["tenant"], d.Headers["lines"])
	want := `order-1 basket-7 application/json {"sku":"A-1"} north 5000000000`
	if got != want || d.DeliveryMode != amqp.Persistent {
		t.Errorf("dead-lettered message = %s, mode %d; want %s, mode %d", got, d.DeliveryMode, want, amqp.Persistent)
	}
	if _, there := d.Headers["x-ruststream-retry-count"]; there {
		t.Errorf("a dead letter carries x-ruststream-retry-count, so it would not start afresh when it is put back")
	}
}

func wantReason(t *testing.T, d amqp.Delivery, attempts int) {
	t.Helper()
	if got := fmt.Sprint(d.Headers["x-rsctl-attempts"]); got != fmt.Sprint(attempts) {
		t.Errorf("x-rsctl-attempts = %s, want %d", got, attempts)
	}
	if got, _ := d.Headers["x-rsctl-error"].(string); !strings.Contains(got, "nothing on the shelf") {
		t.Errorf("x-rsctl-error = %q, want what the handler printed", got)
	}
	if got := d.Headers["x-rsctl-reason"]; got != "max_attempts" {
		t.Errorf("x-rsctl-reason = %v, want max_attempts", got)
	}
}

// wantDelivered looks at the server's own record of a dead letter.
func wantDelivered(t *testing.T, d amqp.Delivery, reason string) {
	t.Helper()
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) != 1 {
		t.Fatalf("x-death = %v, want one entry", d.Headers["x-death"])
	}
	death, _ := deaths[0].(amqp.Table)
	if death["reason"] != reason || death["queue"] != "orders" {
		t.Errorf("x-death = %v, want reason %s at orders", death, reason)
	}
}
