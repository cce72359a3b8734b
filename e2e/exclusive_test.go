package e2e

import (
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

const exclusiveSpec = `version: 1
broker: {url: "${AMQP_URL}"}
declare_topology: true
exchanges:
  - {name: events, type: topic}
queues:
  - name: mine
    type: classic
    exclusive: true
    durable: false
    bindings: [{exchange: events, routing_key: "#"}]
    handler: {exec: ["true"]}
  - name: orders
    type: classic
    handler: {exec: ["true"]}
`

// An exclusive queue belongs to the connection that declares it, so apply leaves
// it to run, and run waits for one that another connection still has.
func TestAnExclusiveQueueIsDeclaredByTheConnectionThatConsumesIt(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	file := harness.Spec(t, exclusiveSpec, nil)
	if out := b.MustRsctl(nil, "-f", file, "apply"); !strings.Contains(out.Stdout, "declared by rsctl run") {
		t.Errorf("apply does not say who declares the exclusive queue:\n%s", out.Stdout)
	}
	holder := b.Channel()
	if _, err := holder.QueueDeclare("mine", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	p := b.StartRsctl(nil, "-f", file, "run", "--listen", "", "--log-format", "text")
	b.Publish("", "orders", bodied("one"))
	harness.Eventually(t, "the other queue to be worked through", func() bool {
		return b.Ready("orders") == 0 && strings.Contains(p.Output(), "locked by another connection")
	})
	if strings.Contains(p.Output(), "no connection to the broker") {
		t.Errorf("a locked queue is logged as a lost connection:\n%s", p.Output())
	}
	if _, err := holder.QueueDelete("mine", false, false, false); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the queue to be declared and bound by rsctl", func() bool {
		return routed(t, b, "events", "anything")
	})
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.Output())
	}
}

// routed reports whether a message to an exchange arrives in a queue.
func routed(t *testing.T, b *harness.Broker, exchange, key string) bool {
	t.Helper()
	ch := b.Channel()
	defer ch.Close()
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirm, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, bodied("probe"))
	if err != nil || !confirm.Wait() {
		t.Fatalf("the probe was not confirmed: %v", err)
	}
	select {
	case <-returns: // a return comes before its confirm
		return false
	default:
		return true
	}
}
