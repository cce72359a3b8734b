package runtime

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// modesOf lists the delays that the broker offers: native belongs to its version,
// the delayed-message exchange to its plugins.
func modesOf(t *testing.T) []string {
	t.Helper()
	modes := []string{"none", "timer", "hold", "dlx_ttl", "tiers", "levels"}
	conn, err := amqp.Dial(brokerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var major, minor int
	version, _ := conn.Properties["version"].(string)
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("server version %q: %v", version, err)
	}
	if major > 4 || major == 4 && minor >= 3 {
		modes = append(modes, "native")
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	probe := fmt.Sprintf("rt-probe-%d-%d", os.Getpid(), queueSeq.Add(1))
	err = ch.ExchangeDeclare(probe, topology.DelayedMessageType, false, true, false, false, amqp.Table{"x-delayed-type": "direct"})
	switch {
	case err == nil:
		_ = ch.ExchangeDelete(probe, false, false)
		modes = append(modes, "plugin_dme")
	case !strings.Contains(err.Error(), "exchange type"):
		t.Fatalf("probe for the delayed-message plugin: %v", err)
	}
	return modes
}

// specQueue is what a spec says about a queue with a delay. The only tier, and
// the server's own back-off, are what a replay waits for.
func specQueue(name string, kind settle.Type, attempts int, mode string) *spec.Queue {
	q := &spec.Queue{Name: name, Type: spec.QueueType(kind), Durable: true, MaxAttempts: attempts}
	if attempts > 0 {
		q.DeadLetter = name + ".dead"
	}
	switch mode {
	case "none":
	case "tiers":
		q.Delay = &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{replayDelay}}
	case "native":
		q.Delay = &spec.Delay{Strategy: mode, Min: replayDelay, Max: replayDelay}
	default:
		q.Delay = &spec.Delay{Strategy: mode}
	}
	return q
}

// declared applies what q needs and returns its policy. All but the ladder is
// deleted after the test.
func (b *bench) declared(q *spec.Queue) settle.Policy {
	b.t.Helper()
	session := broker.On(b.conn, func(context.Context) (*amqp.Connection, error) { return b.connect(amqp.Config{}) })
	defer session.Close()
	top := topology.Compile(&spec.Spec{DeclareTopology: true, Queues: []spec.Queue{*q}}, session.Server())
	r, err := broker.Apply(b.t.Context(), session, top, nil)
	if err != nil || r.Failed() {
		b.t.Fatalf("apply: %v, %v", err, r)
	}
	b.t.Cleanup(func() {
		if err := remove(b.url, top, func(r topology.Role) bool { return r != topology.RoleLadder }); err != nil {
			b.t.Errorf("delete: %v", err)
		}
	})
	return topology.Policy(q)
}

// removeLadder deletes what the levels share, once every test has ended.
func removeLadder() error {
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		return nil // no test can have declared it
	}
	q := specQueue("q", settle.Classic, 0, "levels")
	top := topology.Compile(&spec.Spec{Queues: []spec.Queue{*q}}, topology.Server{})
	return remove(url, top, func(r topology.Role) bool { return r == topology.RoleLadder })
}

// remove deletes the objects of a topology whose role is chosen.
func remove(url string, top *topology.Topology, chosen func(topology.Role) bool) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, q := range top.Queues {
		if chosen(q.Origin.Role) && err == nil {
			_, err = ch.QueueDelete(q.Name, false, false, false)
		}
	}
	for _, x := range top.Exchanges {
		if chosen(x.Origin.Role) && err == nil {
			err = ch.ExchangeDelete(x.Name, false, false)
		}
	}
	return err
}
