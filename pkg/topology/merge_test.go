package topology_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

func TestSharedObjectsAreCompiledOnceAndNameAllTheirQueues(t *testing.T) {
	t.Parallel()
	s := queues(
		spec.Queue{Name: "a", Type: spec.Classic, MaxAttempts: 2, DeadLetter: "dead", Bindings: []spec.Binding{{Exchange: "events"}}},
		spec.Queue{Name: "b", Type: spec.Classic, MaxAttempts: 3, DeadLetter: "dead", Bindings: []spec.Binding{{Exchange: "events"}}},
	)
	s.Exchanges = []spec.Exchange{{Name: "events", Type: "fanout", Durable: true}}
	got := topology.Compile(&s, topology.Server{})

	if len(got.Queues) != 3 || got.Queues[0].Name != "dead" {
		t.Fatalf("queues: %q", text(got))
	}
	both := []string{"a", "b"}
	dead := got.Queues[0]
	if !slices.Equal(dead.Origin.Queues, both) || !slices.Equal(dead.DeadLetterOf, both) {
		t.Errorf("dead: needed by %q, dead letters of %q; want %q", dead.Origin.Queues, dead.DeadLetterOf, both)
	}
	if x := got.Exchanges[0]; !slices.Equal(x.Origin.Queues, both) {
		t.Errorf("events: needed by %q, want %q", x.Origin.Queues, both)
	}
	if ps := topology.Problems(&s); len(ps) > 0 {
		t.Errorf("Problems() = %v", ps)
	}
}

func TestADeadLetterQueueOfTheFileIsTheFiles(t *testing.T) {
	t.Parallel()
	s := queues(
		spec.Queue{Name: "a", Type: spec.Quorum, MaxAttempts: 2, DeadLetter: "dead"},
		spec.Queue{Name: "dead", Type: spec.Classic, Durable: true, Arguments: map[string]any{"x-max-length": int64(9)}},
	)
	got := topology.Compile(&s, topology.Server{})
	want := []string{
		`queue dead {"x-max-length":9,"x-queue-type":"classic"}`,
		`queue a {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead","x-delivery-limit":1,"x-queue-type":"quorum"}`,
	}
	if !slices.Equal(text(got), want) {
		t.Errorf("got %q, want %q", text(got), want)
	}
	if q := got.Queues[0]; q.AcceptExisting || q.Origin.Role != topology.RoleWork || !slices.Equal(q.DeadLetterOf, []string{"a"}) {
		t.Errorf("dead: %+v", q)
	}
}

func TestForIsWhatOneSubscriptionNeeds(t *testing.T) {
	t.Parallel()
	s := queues(
		spec.Queue{
			Name: "a", Type: spec.Classic, Durable: true, MaxAttempts: 2, DeadLetter: "b",
			DeadLetterExchange: ptr("rejected"), Delay: &spec.Delay{Strategy: "dlx_ttl"},
			Bindings: []spec.Binding{{Exchange: "events", RoutingKey: "a"}},
		},
		spec.Queue{Name: "b", Type: spec.Classic, Durable: true, Delay: &spec.Delay{Strategy: "plugin_dme"}, Bindings: []spec.Binding{{Exchange: "events", RoutingKey: "b"}}},
	)
	s.Exchanges = []spec.Exchange{{Name: "events", Type: "topic", Durable: true}, {Name: "unused", Type: "topic", Durable: true}}
	all := topology.Compile(&s, topology.Server{})
	tests := []struct {
		queue string
		want  []string
	}{
		{"a", []string{
			`exchange events topic`,
			`find exchange rejected`,
			`queue b {"x-queue-type":"classic"}`,
			`queue a.retry {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"a","x-queue-type":"classic"}`,
			`queue a {"x-dead-letter-exchange":"rejected","x-queue-type":"classic"}`,
			`bind events -> queue a key "a"`,
		}},
		{"b", []string{
			`exchange events topic`,
			`exchange b.delay x-delayed-message {"x-delayed-type":"direct"}`,
			`queue b {"x-queue-type":"classic"}`,
			`bind events -> queue b key "b"`,
			`bind b.delay -> queue b key "b"`,
		}},
		{"nobody", nil},
	}
	for _, tt := range tests {
		t.Run(tt.queue, func(t *testing.T) {
			t.Parallel()
			part := all.For(tt.queue)
			if got := text(part); !slices.Equal(got, tt.want) {
				t.Errorf("For(%q):\n got %s\nwant %s", tt.queue, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

func TestProblemsReportsObjectsThatTwoQueuesNeedDifferently(t *testing.T) {
	t.Parallel()
	wait := func(name string, typ spec.QueueType) spec.Queue {
		return spec.Queue{Name: name, Type: typ, Durable: true, Delay: &spec.Delay{Strategy: "dlx_ttl", WaitingQueue: "wait"},
			Keys: map[string]spec.Pos{"delay": {Line: 9, Col: 3}}}
	}
	tests := []struct {
		name string
		spec spec.Spec
		want string
	}{
		{
			"one waiting queue cannot lead back to two queues",
			queues(wait("a", spec.Classic), wait("b", spec.Classic)),
			`queue "wait" is needed as the waiting queue of "a" and, with other settings, as the waiting queue of "b"`,
		},
		{
			"one dead-letter queue cannot have two types",
			queues(
				spec.Queue{Name: "a", Type: spec.Classic, MaxAttempts: 2, DeadLetter: "dead"},
				spec.Queue{Name: "b", Type: spec.Quorum, MaxAttempts: 2, DeadLetter: "dead"},
			),
			`queue "dead" is needed as the dead-letter queue of "a" and, with other settings, as the dead-letter queue of "b"`,
		},
		{
			"a waiting queue is no dead-letter queue",
			queues(
				spec.Queue{Name: "a", Type: spec.Classic, MaxAttempts: 2, DeadLetter: "b.retry"},
				spec.Queue{Name: "b", Type: spec.Classic, Delay: &spec.Delay{Strategy: "dlx_ttl"}},
			),
			`queue "b.retry" is needed as the dead-letter queue of "a" and, with other settings, as the waiting queue of "b"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ps := topology.Problems(&tt.spec)
			if len(ps) != 1 || ps[0].Message != tt.want || ps[0].Severity != spec.Error || ps[0].Rule != "shared-object" || ps[0].File != "queues.yaml" {
				t.Errorf("Problems() = %v\nwant one: %s", ps, tt.want)
			}
		})
	}
}

func TestOneDelayedExchangeMayServeManyQueues(t *testing.T) {
	t.Parallel()
	delay := &spec.Delay{Strategy: "plugin_dme", Exchange: "later"}
	s := queues(spec.Queue{Name: "a", Type: spec.Classic, Delay: delay}, spec.Queue{Name: "b", Type: spec.Quorum, Delay: delay})
	if ps := topology.Problems(&s); len(ps) > 0 {
		t.Errorf("Problems() = %v", ps)
	}
	if got := topology.Compile(&s, topology.Server{}); len(got.Exchanges) != 1 || len(got.Bindings) != 2 {
		t.Errorf("got %q", text(got))
	}
}

func TestDefaultCopiesNamesTheQueuesThatPublishThere(t *testing.T) {
	t.Parallel()
	s := queues(
		spec.Queue{Name: "capped", Type: spec.Classic, MaxAttempts: 2, Delay: &spec.Delay{Strategy: "hold"}},
		spec.Queue{Name: "timer", Type: spec.Classic},
		spec.Queue{Name: "elsewhere", Type: spec.Classic, MaxAttempts: 2, RetryPublisher: &spec.RetryPublisher{Exchange: "retries"}},
		spec.Queue{Name: "waits", Type: spec.Quorum, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{time.Second}}},
		spec.Queue{Name: "counted", Type: spec.Quorum, MaxAttempts: 2, DeadLetter: "dead"},
		spec.Queue{Name: "ladder", Type: spec.Quorum, Delay: &spec.Delay{Strategy: "levels"}},
	)
	all := topology.Compile(&s, topology.Server{})
	if want := []string{"capped", "timer", "waits"}; !slices.Equal(all.DefaultCopies, want) {
		t.Errorf("DefaultCopies = %q, want %q", all.DefaultCopies, want)
	}
	if got := all.For("timer").DefaultCopies; !slices.Equal(got, []string{"timer"}) {
		t.Errorf("For(timer).DefaultCopies = %q", got)
	}
}
