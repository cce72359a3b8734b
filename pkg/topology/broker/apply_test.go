package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// everything is a spec with every strategy that needs no plugin and no version.
func everything() spec.Spec {
	s := queues(
		queue("classic", func(q *spec.Queue) {
			q.MaxAttempts, q.DeadLetter = 3, "classic.dead"
			q.Delay = &spec.Delay{Strategy: "dlx_ttl"}
			q.Bindings = []spec.Binding{{Exchange: "events", RoutingKey: "a.*"}, {Exchange: "amq.headers", Arguments: map[string]any{"x-match": "any", "n": int64(5)}}}
		}),
		queue("quorum", func(q *spec.Queue) {
			q.Type, q.MaxAttempts, q.DeadLetter = spec.Quorum, 3, "quorum.dead"
			q.Delay = &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{time.Second, time.Minute}}
			q.Bindings = []spec.Binding{{Exchange: "events", RoutingKey: "b.#"}}
		}),
		queue("published", func(q *spec.Queue) {
			q.MaxAttempts, q.DeadLetter = 2, "published.dead"
			q.DeadLetterExchange = new(string)
			*q.DeadLetterExchange = "events"
			q.RetryPublisher = &spec.RetryPublisher{Exchange: "retries"}
			q.Consumer.SingleActive = true
		}),
	)
	s.Exchanges = []spec.Exchange{
		{Name: "events", Type: "topic", Durable: true},
		{Name: "retries", Type: "direct", AutoDelete: true, Internal: false},
	}
	return s
}

func TestApplyDeclaresEverythingOnceAndCheckFindsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(everything())

	first := b.apply(top)
	allIn(t, first, broker.Created, broker.OK)
	for _, q := range top.Queues {
		want(t, find(t, first, "queue", q.Name), broker.Created, "")
	}
	second := b.apply(top)
	allIn(t, second, broker.OK)
	if first.Failed() || first.Err() != nil || second.Err() != nil {
		t.Errorf("failed: %v, %v", first.Err(), second.Err())
	}
	checked := b.check(top, b.management())
	allIn(t, checked, broker.OK)
	if n := len(top.Exchanges) + len(top.Queues) + len(top.Bindings) + 1; len(checked.Findings) != n {
		t.Errorf("%d findings, want one per object and one for the permission: %d", len(checked.Findings), n)
	}
	if r := b.verify(top); r.Failed() {
		t.Errorf("Verify: %v", r.Err())
	}
}

func TestCheckWithoutTheManagementAPISaysWhatItCouldNotSee(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(everything())
	b.apply(top)
	r := b.check(top, nil)
	allIn(t, r, broker.OK, broker.NotVerified)
	n := len(top.Bindings)
	want(t, find(t, r, "binding", fmt.Sprintf("%d of %d", n, n)), broker.NotVerified, "management API")
	if r.Failed() {
		t.Errorf("not seeing is not failing: %v", r.Err())
	}
}

func TestApplyKeepsLargeIntegers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := map[string]any{
		"x-max-length-bytes": json.Number("5368709120"), "x-message-ttl": json.Number("2147483648"), "x-queue-type": "classic",
	}
	b.apply(b.compile(queues(queue("big", func(q *spec.Queue) {
		q.Arguments = map[string]any{"x-max-length-bytes": int64(5368709120), "x-message-ttl": int64(2147483648)}
	}))))
	got := b.arguments("big")
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %v on the broker, want %v", key, got[key], value)
		}
	}
}

func TestApplyReportsEveryDifferenceAndDeletesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("jobs", nil)
	ch := b.channel()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		c, err := ch.PublishWithDeferredConfirm("", "jobs", true, false, amqp.Publishing{})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := c.WaitContext(t.Context()); !ok || err != nil {
			t.Fatalf("not confirmed: %v", err)
		}
	}
	if err := ch.ExchangeDeclare("events", "direct", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	s := queues(
		queue("jobs", func(q *spec.Queue) {
			q.Arguments = map[string]any{"x-message-ttl": int64(20000), "x-max-length": int64(7), "x-overflow": "drop-head"}
			q.Bindings = []spec.Binding{{Exchange: "events", RoutingKey: "jobs"}}
		}),
		queue("other", nil),
	)
	s.Exchanges = []spec.Exchange{{Name: "events", Type: "topic", Durable: true}}
	top := b.compile(s)
	for name, r := range map[string]*broker.Report{"Apply": b.apply(top), "Check": b.check(top, b.management())} {
		jobs := find(t, r, "queue", "jobs")
		want(t, jobs, broker.Conflict, "x-message-ttl: have none, want 20000")
		want(t, jobs, broker.Conflict, "x-max-length: have none, want 7")
		want(t, jobs, broker.Conflict, `x-overflow: have none, want "drop-head"`)
		want(t, find(t, r, "exchange", "events"), broker.Conflict, "is direct, want topic")
		if jobs.Hint == "" || !r.Failed() {
			t.Errorf("%s: hint %q, failed %t", name, jobs.Hint, r.Failed())
		}
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "x-message-ttl: have none, want 20000") {
			t.Errorf("%s: Err() = %v", name, err)
		}
	}
	want(t, find(t, b.apply(top), "queue", "other"), broker.OK, "")
	q, err := b.channel().QueueDeclarePassive("jobs", true, false, false, false, nil)
	if err != nil || q.Messages != 5 {
		t.Errorf("jobs has %d messages (%v), want the 5 from before", q.Messages, err)
	}
}

func TestTheTypeIsSentWhateverTheVhostsDefault(t *testing.T) {
	t.Parallel()
	b := setupVhost(t, map[string]any{"default_queue_type": "quorum"})
	b.declare("there", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(5), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "d"})
	top := b.compile(queues(queue("new", nil), queue("there", nil)))
	r := b.apply(top)
	want(t, find(t, r, "queue", "new"), broker.Created, "")
	if got := b.arguments("new")["x-queue-type"]; got != "classic" {
		t.Errorf("new is %v, want classic", got)
	}
	for name, r := range map[string]*broker.Report{"Apply": r, "Check": b.check(top, nil), "Verify": b.verify(top)} {
		t.Run(name, func(t *testing.T) {
			if f := find(t, r, "queue", "there"); f.State != broker.Conflict || f.Detail != "is quorum, want classic" {
				t.Errorf("%s; want the type alone", f)
			}
		})
	}
	if got := b.arguments("there")["x-queue-type"]; got != "quorum" {
		t.Errorf("there is %v now", got)
	}
}

func TestAClassicQueueIsNotTakenForAQuorumOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("plain", nil) // without a type
	b.declare("typed", amqp.Table{"x-queue-type": "classic", "x-max-priority": int64(3)})
	pair := func(q *spec.Queue) { q.Type, q.MaxAttempts, q.DeadLetter = spec.Quorum, 3, "dead" }
	top := b.compile(queues(queue("plain", pair), queue("typed", pair)))
	for name, r := range map[string]*broker.Report{"Apply": b.apply(top), "Check": b.check(top, nil), "Verify": b.verify(top)} {
		for _, q := range []string{"plain", "typed"} {
			if f := find(t, r, "queue", q); f.State != broker.Conflict || f.Detail != "is classic, want quorum" {
				t.Errorf("%s: %s; want the type alone", name, f)
			}
		}
	}
}

func TestOneUnavailableExchangeTypeDoesNotHideTheRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(
		queue("one", nil),
		queue("two", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "plugin_dme"} }),
		queue("three", func(q *spec.Queue) { q.Bindings = []spec.Binding{{Exchange: "amq.topic", RoutingKey: "k"}} }),
	))
	for i := range top.Exchanges {
		if top.Exchanges[i].Name == "two.delay" {
			top.Exchanges[i].Type = "x-not-there" // whatever plugins this broker has
		}
	}
	own := b.session()
	r, err := broker.Apply(soon(t), own, top, nil)
	if err != nil {
		t.Fatal(err)
	}
	if own.Conn().IsClosed() {
		t.Error("the session's connection was lost to the question")
	}
	checked, err := broker.Check(soon(t), b.session(), b.management(), top)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*broker.Report{"Apply": r, "Check": checked} {
		f := find(t, r, "exchange", "two.delay")
		want(t, f, broker.Refused, `exchange type "x-not-there" is not available`)
		want(t, find(t, r, "binding", "two.delay -> two (two)"), broker.Skipped, `needs exchange "two.delay"`)
		if f.Hint == "" || !r.Failed() {
			t.Errorf("%s: hint %q, failed %t", name, f.Hint, r.Failed())
		}
	}
	for _, q := range []string{"one", "two", "three"} {
		want(t, find(t, r, "queue", q), broker.Created, "")
		want(t, find(t, checked, "queue", q), broker.OK, "")
	}
	want(t, find(t, checked, "binding", "amq.topic -> three (k)"), broker.OK, "")
}

func TestAnAnswerThatClosesTheConnectionIsSurvived(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := broker.Dial(t.Context(), b.broker, "owned by the test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	top := &topology.Topology{
		Exchanges: []topology.Exchange{{Name: "odd", Type: "x-not-there", Durable: true}},
		Queues:    []topology.Queue{{Name: "q", Type: "classic", Durable: true, Arguments: map[string]any{"x-queue-type": "classic"}}},
	}
	// Without a dialler the question must go over the only connection.
	r, err := broker.Apply(t.Context(), broker.On(conn, nil), top, nil)
	want(t, find(t, r, "exchange", "odd"), broker.Refused, "is not available")
	if conn.IsClosed() {
		if err == nil {
			t.Error("no error although the only connection is gone")
		}
		return
	}
	if err != nil {
		t.Error(err)
	}
	want(t, find(t, r, "queue", "q"), broker.Created, "")
}

func TestABindingToAMissingExchangeNamesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bind := func(x string) func(*spec.Queue) {
		return func(q *spec.Queue) { q.Bindings = []spec.Binding{{Exchange: x, RoutingKey: "k"}} }
	}
	s := queues(queue("a", bind("nope")), queue("b", nil), queue("c", bind("events")))
	s.Exchanges = []spec.Exchange{{Name: "events", Type: "direct", Durable: true}}
	top := b.compile(s)
	r := b.apply(top)
	want(t, find(t, r, "exchange", "nope"), broker.Missing, "does not exist")
	want(t, find(t, r, "binding", "nope -> a (k)"), broker.Skipped, `needs exchange "nope"`)
	want(t, find(t, r, "binding", "events -> c (k)"), broker.OK, "")
	for _, q := range []string{"a", "b", "c"} {
		want(t, find(t, r, "queue", q), broker.Created, "")
	}
	want(t, find(t, b.check(top, b.management()), "exchange", "nope"), broker.Missing, "")

	// Not known to the topology, the server's answer says it.
	top.Exchanges = slices.DeleteFunc(top.Exchanges, func(x topology.Exchange) bool { return x.Name == "nope" })
	want(t, find(t, b.apply(top), "binding", "nope -> a (k)"), broker.Missing, `exchange "nope" does not exist`)
}

func TestAnInvalidArgumentIsTheServersRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.apply(b.compile(queues(
		queue("bad", func(q *spec.Queue) { q.Arguments = map[string]any{"x-message-ttl": "soon"} }),
		queue("good", nil),
	)))
	want(t, find(t, r, "queue", "bad"), broker.Refused, "invalid arg 'x-message-ttl'")
	want(t, find(t, r, "queue", "good"), broker.Created, "")
}
