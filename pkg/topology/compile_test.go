package topology_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// text writes a topology one object a line, in order of declaration.
func text(t *topology.Topology) []string {
	var out []string
	for _, x := range t.Exchanges {
		line := fmt.Sprintf("exchange %s %s%s", x.Name, x.Type, arguments(x.Arguments))
		if x.External {
			line = "find exchange " + x.Name
		}
		out = append(out, line+flags(map[string]bool{"transient": !x.Durable && !x.External, "auto-delete": x.AutoDelete, "internal": x.Internal}))
	}
	for _, q := range t.Queues {
		line := fmt.Sprintf("queue %s%s", q.Name, arguments(q.Arguments))
		if q.External {
			line = "find " + line
		}
		out = append(out, line+flags(map[string]bool{
			"transient": !q.Durable, "exclusive": q.Exclusive, "auto-delete": q.AutoDelete, "as it is": q.AcceptExisting,
		}))
	}
	for _, b := range t.Bindings {
		to := "queue"
		if b.ToExchange {
			to = "exchange"
		}
		out = append(out, fmt.Sprintf("bind %s -> %s %s key %q%s", b.Source, to, b.Destination, b.RoutingKey, arguments(b.Arguments)))
	}
	return out
}

func arguments(args map[string]any) string {
	if len(args) == 0 {
		return ""
	}
	b, err := json.Marshal(args)
	if err != nil {
		return err.Error()
	}
	return " " + string(b)
}

func flags(set map[string]bool) string {
	var out []string
	for name, on := range set {
		if on {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

func TestCompile(t *testing.T) {
	t.Parallel()
	classic := func(change func(*spec.Queue)) spec.Queue {
		q := spec.Queue{Name: "orders", Type: spec.Classic, Durable: true}
		change(&q)
		return q
	}
	quorum := func(change func(*spec.Queue)) spec.Queue {
		q := spec.Queue{Name: "orders", Type: spec.Quorum, Durable: true}
		change(&q)
		return q
	}
	tests := []struct {
		name    string
		spec    spec.Spec
		version string
		want    []string
	}{
		{
			name: "the queue type is always sent",
			spec: queues(classic(func(*spec.Queue) {})),
			want: []string{`queue orders {"x-queue-type":"classic"}`},
		},
		{
			name: "a classic queue is what its flags say",
			spec: queues(classic(func(q *spec.Queue) { q.Durable, q.Exclusive, q.AutoDelete = false, true, true })),
			want: []string{`queue orders {"x-queue-type":"classic"} (auto-delete, exclusive, transient)`},
		},
		{
			name: "the pair on a classic queue sets no arguments and declares a classic dead-letter queue first",
			spec: queues(classic(func(q *spec.Queue) { q.MaxAttempts, q.DeadLetter = 3, "orders.dead" })),
			want: []string{
				`queue orders.dead {"x-queue-type":"classic"} (as it is)`,
				`queue orders {"x-queue-type":"classic"}`,
			},
		},
		{
			name:    "the pair on a quorum queue is the server's limit, and its dead-letter queue has none",
			spec:    queues(quorum(func(q *spec.Queue) { q.MaxAttempts, q.DeadLetter = 3, "orders.dead" })),
			version: "4.0.5",
			want: []string{
				`queue orders.dead {"x-delivery-limit":-1,"x-queue-type":"quorum"} (as it is)`,
				`queue orders {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders.dead","x-delivery-limit":2,"x-queue-type":"quorum"}`,
			},
		},
		{
			name:    "on 3.x a limit of -1 means drop at once, so that none is sent",
			spec:    queues(quorum(func(q *spec.Queue) { q.MaxAttempts, q.DeadLetter = 1, "orders.dead" })),
			version: "3.13.7",
			want: []string{
				`queue orders.dead {"x-queue-type":"quorum"} (as it is)`,
				`queue orders {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders.dead","x-delivery-limit":0,"x-queue-type":"quorum"}`,
			},
		},
		{
			name: "a quorum queue without the pair has no limit of ours",
			spec: queues(quorum(func(*spec.Queue) {})),
			want: []string{`queue orders {"x-queue-type":"quorum"}`},
		},
		{
			name: "the queue's own dead-letter route, the default exchange included",
			spec: queues(classic(func(q *spec.Queue) { q.DeadLetterExchange, q.DeadLetterRoutingKey = ptr(""), ptr("rejected") })),
			want: []string{`queue orders {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"rejected","x-queue-type":"classic"}`},
		},
		{
			name: "an exchange that is only referred to must be found",
			spec: queues(classic(func(q *spec.Queue) {
				q.DeadLetterExchange = ptr("rejected")
				q.Bindings = []spec.Binding{{Exchange: "amq.topic", RoutingKey: "order.*", Arguments: map[string]any{"n": 1}}}
			})),
			want: []string{
				`find exchange rejected`,
				`find exchange amq.topic`,
				`queue orders {"x-dead-letter-exchange":"rejected","x-queue-type":"classic"}`,
				`bind amq.topic -> queue orders key "order.*" {"n":1}`,
			},
		},
		{
			name: "declared exchanges come first, in the order of the file",
			spec: spec.Spec{
				Exchanges: []spec.Exchange{
					{Name: "events", Type: "topic", Durable: true, Arguments: map[string]any{"alternate-exchange": "legacy"}},
					{Name: "legacy", External: true},
					{Name: "unused", Type: "fanout", AutoDelete: true, Internal: true},
				},
				Queues: []spec.Queue{classic(func(q *spec.Queue) { q.Bindings = []spec.Binding{{Exchange: "events", RoutingKey: "order.*"}} })},
			},
			want: []string{
				`exchange events topic {"alternate-exchange":"legacy"}`,
				`find exchange legacy`,
				`exchange unused fanout (auto-delete, internal, transient)`,
				`queue orders {"x-queue-type":"classic"}`,
				`bind events -> queue orders key "order.*"`,
			},
		},
		{
			name: "an external queue is only to be found",
			spec: queues(classic(func(q *spec.Queue) { q.External = true })),
			want: []string{`find queue orders {"x-queue-type":"classic"}`},
		},
		{
			name: "arguments go out as they are, with single active consumer beside them",
			spec: queues(classic(func(q *spec.Queue) {
				q.Arguments = map[string]any{"x-max-length-bytes": int64(5368709120), "x-overflow": "reject-publish"}
				q.Consumer.SingleActive = true
			})),
			want: []string{`queue orders {"x-max-length-bytes":5368709120,"x-overflow":"reject-publish","x-queue-type":"classic","x-single-active-consumer":true}`},
		},
		{
			name: "a retry publisher's exchange leads to the queue and its dead-letter queue",
			spec: queues(classic(func(q *spec.Queue) {
				q.MaxAttempts, q.DeadLetter = 3, "orders.dead"
				q.RetryPublisher = &spec.RetryPublisher{Exchange: "retries"}
			})),
			want: []string{
				`find exchange retries`,
				`queue orders.dead {"x-queue-type":"classic"} (as it is)`,
				`queue orders {"x-queue-type":"classic"}`,
				`bind retries -> queue orders key "orders"`,
				`bind retries -> queue orders.dead key "orders.dead"`,
			},
		},
		{
			name: "a headers exchange does not look at keys, so that its bindings are the user's",
			spec: spec.Spec{
				Exchanges: []spec.Exchange{{Name: "retries", Type: "headers", Durable: true}},
				Queues: []spec.Queue{classic(func(q *spec.Queue) {
					q.MaxAttempts, q.RetryPublisher = 3, &spec.RetryPublisher{Exchange: "retries"}
				})},
			},
			want: []string{
				`exchange retries headers`,
				`queue orders {"x-queue-type":"classic"}`,
			},
		},
		{
			name: "dlx_ttl is a waiting queue that leads back, before the queue",
			spec: queues(classic(func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl"} })),
			want: []string{
				`queue orders.retry {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders","x-queue-type":"classic"}`,
				`queue orders {"x-queue-type":"classic"}`,
			},
		},
		{
			name: "dlx_ttl on quorum dead-letters at least once",
			spec: queues(quorum(func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl", WaitingQueue: "orders.wait"} })),
			want: []string{
				`queue orders.wait {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders","x-dead-letter-strategy":"at-least-once","x-overflow":"reject-publish","x-queue-type":"quorum"}`,
				`queue orders {"x-queue-type":"quorum"}`,
			},
		},
		{
			name: "tiers are one waiting queue per delay, named by it",
			spec: queues(classic(func(q *spec.Queue) {
				q.Delay = &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{500 * time.Millisecond, 90 * time.Second, 24 * time.Hour}}
			})),
			want: []string{
				`queue orders.retry.500ms {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders","x-message-ttl":500,"x-queue-type":"classic"}`,
				`queue orders.retry.90s {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders","x-message-ttl":90000,"x-queue-type":"classic"}`,
				`queue orders.retry.1d {"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders","x-message-ttl":86400000,"x-queue-type":"classic"}`,
				`queue orders {"x-queue-type":"classic"}`,
			},
		},
		{
			name: "plugin_dme is an exchange of the plugin, bound by the queue's name",
			spec: queues(quorum(func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "plugin_dme"} })),
			want: []string{
				`exchange orders.delay x-delayed-message {"x-delayed-type":"direct"}`,
				`queue orders {"x-queue-type":"quorum"}`,
				`bind orders.delay -> queue orders key "orders"`,
			},
		},
		{
			name: "a delayed exchange of the file is used as it is declared there",
			spec: spec.Spec{
				Exchanges: []spec.Exchange{{Name: "later", External: true}},
				Queues:    []spec.Queue{classic(func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "plugin_dme", Exchange: "later"} })},
			},
			want: []string{
				`find exchange later`,
				`queue orders {"x-queue-type":"classic"}`,
				`bind later -> queue orders key "orders"`,
			},
		},
		{
			name: "native is arguments of the queue itself, in milliseconds",
			spec: queues(quorum(func(q *spec.Queue) {
				q.Delay = &spec.Delay{Strategy: "native", Min: 500 * time.Millisecond, Max: time.Minute}
			})),
			want: []string{`queue orders {"x-delayed-retry-max":60000,"x-delayed-retry-min":500,"x-delayed-retry-type":"failed","x-queue-type":"quorum"}`},
		},
		{
			name: "timer and hold need nothing",
			spec: queues(
				classic(func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "timer"} }),
				quorum(func(q *spec.Queue) { q.Name, q.Delay = "holds", &spec.Delay{Strategy: "hold"} }),
			),
			want: []string{
				`queue orders {"x-queue-type":"classic"}`,
				`queue holds {"x-queue-type":"quorum"}`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := topology.Server{Version: tt.version}
			got := text(topology.Compile(&tt.spec, srv))
			if !slices.Equal(got, tt.want) {
				t.Errorf("Compile():\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
			if again := topology.Compile(&tt.spec, srv); !slices.Equal(text(again), got) {
				t.Errorf("a second Compile() differs: %q", text(again))
			}
			if ps := topology.Problems(&tt.spec); len(ps) > 0 {
				t.Errorf("Problems() = %v", ps)
			}
		})
	}
}

func TestEveryIntegerOfAnArgumentIs64Bits(t *testing.T) {
	t.Parallel()
	s := queues(spec.Queue{Name: "big", Type: spec.Classic, Arguments: map[string]any{
		"x-a": 5368709120, "x-b": int32(7), "x-c": uint16(8), "x-d": []any{1, map[string]any{"y": uint8(2)}}, "x-e": 1.5, "x-f": true,
	}})
	got := topology.Compile(&s, topology.Server{}).Queues[0].Arguments
	want := map[string]any{
		"x-a": int64(5368709120), "x-b": int64(7), "x-c": int64(8), "x-d": []any{int64(1), map[string]any{"y": int64(2)}}, "x-e": 1.5, "x-f": true,
		"x-queue-type": "classic",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("arguments:\n got %#v\nwant %#v", got, want)
	}
}

func TestCompileLeavesTheSpecAlone(t *testing.T) {
	t.Parallel()
	args := map[string]any{"x-max-length": int64(3)}
	s := queues(spec.Queue{Name: "orders", Type: spec.Quorum, MaxAttempts: 2, DeadLetter: "dead", Arguments: args})
	topology.Compile(&s, topology.Server{})
	if want := (map[string]any{"x-max-length": int64(3)}); !reflect.DeepEqual(args, want) {
		t.Errorf("arguments of the spec are %v now", args)
	}
}

func queues(list ...spec.Queue) spec.Spec { return spec.Spec{File: "queues.yaml", Queues: list} }

func ptr[T any](v T) *T { return &v }
