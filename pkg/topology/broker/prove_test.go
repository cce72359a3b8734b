package broker_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// prove proves without having declared anything.
func (b *bundle) prove(of spec.Broker, m *broker.Management, t *topology.Topology) *broker.Report {
	b.t.Helper()
	r, err := broker.Prove(b.t.Context(), b.sessionOf(of), m, t, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestAWaitingQueueOfTheWrongShapeIsFoundOverAMQPAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, limited := b.limited(`^$`, `.*`, `.*`)
	waits := func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl"} }
	back := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "good"}
	tests := []struct {
		name   string
		have   amqp.Table
		detail string // "": arrives
	}{
		{"good", back, ""},
		{"typed", amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "typed"}, ""},
		{"nowhere", amqp.Table{}, "no x-dead-letter-exchange"},
		{"astray", back, `sends what expires to queue "good", not to "astray"`},
		{"circles", amqp.Table{"x-dead-letter-exchange": ""}, "circles"},
	}
	for _, tt := range tests {
		b.declare(tt.name, amqp.Table{"x-queue-type": "classic"})
		b.declare(tt.name+".retry", tt.have)
		top := b.compile(queues(queue(tt.name, waits)))
		for _, m := range []*broker.Management{nil, b.management()} {
			r := b.prove(b.broker, m, top)
			if tt.detail == "" {
				if len(r.Findings) != 0 {
					t.Errorf("%s: %s", tt.name, strings.Join(lines(r), "\n"))
				}
				continue
			}
			want(t, find(t, r, "copies", tt.name), broker.Conflict, tt.detail)
			want(t, find(t, b.check(top, m), "copies", tt.name), broker.Conflict, tt.detail)
		}
		// Who may not look is told so, unless the management API shows it.
		want(t, find(t, b.prove(limited, nil, top), "copies", tt.name), broker.NotVerified, `the arguments of queue "`+tt.name+`.retry"`)
		if r := b.prove(limited, b.management(), top); r.Failed() != (tt.detail != "") {
			t.Errorf("%s, through the management API: %s", tt.name, strings.Join(lines(r), "\n"))
		}
	}
}

func TestAnExchangeThatCopiesDoNotComeBackFromIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"orders", "bills"} {
		b.declare(name, amqp.Table{"x-queue-type": "classic"})
	}
	ch := b.channel()
	for name, kind := range map[string]string{"orders.delay": "direct", "retries": "topic"} {
		if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	plugin := b.compile(queues(queue("orders", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "plugin_dme"} })))
	copies := b.compile(queues(queue("orders", func(q *spec.Queue) {
		q.MaxAttempts, q.RetryPublisher = 3, &spec.RetryPublisher{Exchange: "retries"}
	})))
	for _, m := range []*broker.Management{nil, b.management()} {
		want(t, find(t, b.prove(b.broker, m, plugin), "copies", "orders"), broker.Conflict, `exchange "orders.delay" is of type direct, not x-delayed-message`)
	}
	bind := func(queue, key string) {
		if err := ch.QueueBind(queue, key, "retries", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	want(t, find(t, b.prove(b.broker, nil, copies), "copies", "orders"), broker.NotVerified, `the bindings of exchange "retries"`)
	bind("bills", "#")
	want(t, find(t, b.prove(b.broker, b.management(), copies), "copies", "orders"), broker.Conflict, "retries do not arrive")
	bind("orders", "ord*")
	want(t, find(t, b.prove(b.broker, b.management(), copies), "copies", "orders"), broker.Conflict, "retries do not arrive")
	bind("orders", "*")
	if r := b.prove(b.broker, b.management(), copies); len(r.Findings) != 0 {
		t.Errorf("bound, and %s", strings.Join(lines(r), "\n"))
	}
}

func TestABrokenLadderIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(queue("orders", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "levels"} })))
	b.apply(top)
	if r := b.prove(b.broker, b.management(), top); len(r.Findings) != 0 {
		t.Errorf("whole, and %s", strings.Join(lines(r), "\n"))
	}
	if r, err := broker.Prove(t.Context(), b.session(), nil, top, top); err != nil || len(r.Findings) != 0 {
		t.Errorf("what was just declared is known: %v, %v", err, r)
	}
	want(t, find(t, b.prove(b.broker, nil, top), "copies", "orders"), broker.NotVerified, "the bindings of exchange")
	if _, err := b.channel().QueueDelete("rsctl.v1.level-03", false, false, false); err != nil {
		t.Fatal(err)
	}
	b.declare("rsctl.v1.level-03", amqp.Table{"x-queue-type": "quorum", "x-message-ttl": int64(8000)})
	want(t, find(t, b.prove(b.broker, nil, top), "copies", "rsctl.v1.level-03"), broker.Conflict, "x-dead-letter-exchange: have none")
	want(t, find(t, b.prove(b.broker, b.management(), top), "copies", "orders"), broker.Conflict, `exchange "rsctl.v1.level-03" sends nothing`)
}

func TestAnExternalWaitingQueueIsProvedAlsoBesideADeclaredTopology(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("wait", amqp.Table{"x-queue-type": "classic"})
	top := b.compile(queues(
		queue("orders", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl", WaitingQueue: "wait"} }),
		queue("wait", func(q *spec.Queue) { q.External = true }),
	))
	b.apply(top)
	r, err := broker.Prove(t.Context(), b.session(), nil, top, top)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "copies", "orders"), broker.Conflict, "no x-dead-letter-exchange")
	// A policy that gives it a route is seen through the management API.
	b.api("PUT", "policies/"+b.vhost+"/back", map[string]any{"pattern": "^wait$", "definition": map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": "orders"}})
	for ctx := soon(t); ctx.Err() == nil; {
		if r, err = broker.Prove(ctx, b.session(), b.management(), top, top); err != nil || len(r.Findings) == 0 {
			break
		}
	}
	if err != nil || len(r.Findings) != 0 {
		t.Errorf("with a policy: %v, %s", err, strings.Join(lines(r), "\n"))
	}
}

func TestAWaitingQueueThatSomebodyConsumesIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(queue("orders", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl"} })))
	b.apply(top)
	if _, err := b.channel().Consume("orders.retry", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	r := b.prove(b.broker, b.management(), top)
	want(t, find(t, r, "copies", "orders.retry"), broker.Warned, `delayed retries of "orders" are taken before they are due`)
	if r.Failed() {
		t.Errorf("a warning is no failure: %s", strings.Join(lines(r), "\n"))
	}
}
