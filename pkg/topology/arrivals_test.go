package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

func TestArrivals(t *testing.T) {
	t.Parallel()
	byDefault := settle.Arrival{Key: "orders"}
	through, key := "back", "again"
	retries := &spec.RetryPublisher{Exchange: "retries"}
	ladder := []settle.Arrival{byDefault, {Exchange: "rsctl.v1.deliver"}}
	for i := range 28 {
		ladder = append(ladder, settle.Arrival{Exchange: fmt.Sprintf("rsctl.v1.level-%02d", i)})
	}
	tests := []struct {
		name   string
		queues []spec.Queue // the first is looked at
		want   []settle.Arrival
	}{
		{"the default exchange always", []spec.Queue{{Name: "orders"}}, []settle.Arrival{byDefault}},
		{"a waiting queue leads back by it", []spec.Queue{{Name: "orders", Delay: &spec.Delay{Strategy: "dlx_ttl"}}}, []settle.Arrival{byDefault}},
		{"a delayed exchange", []spec.Queue{{Name: "orders", Delay: &spec.Delay{Strategy: "plugin_dme"}}},
			[]settle.Arrival{byDefault, {Exchange: "orders.delay", Key: "orders"}}},
		{"the ladder, by any key", []spec.Queue{{Name: "orders", Delay: &spec.Delay{Strategy: "levels"}}},
			ladder},
		{"the exchange of its retries", []spec.Queue{{Name: "orders", RetryPublisher: retries}},
			[]settle.Arrival{byDefault, {Exchange: "retries", Key: "orders"}}},
		{"that of the queues whose dead letters it takes", []spec.Queue{{Name: "orders"}, {Name: "mail", DeadLetter: "orders", RetryPublisher: retries}, {Name: "other", RetryPublisher: retries}},
			[]settle.Arrival{byDefault, {Exchange: "retries", Key: "orders"}}},
		{"that by which its own waiting queue leads back",
			[]spec.Queue{{Name: "orders", Delay: &spec.Delay{Strategy: "dlx_ttl", WaitingQueue: "wait"}}, {Name: "wait", DeadLetterExchange: &through, DeadLetterRoutingKey: &key}},
			[]settle.Arrival{byDefault, {Exchange: "back", Key: "again"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &spec.Spec{Queues: tt.queues}
			if got := topology.Arrivals(s, &s.Queues[0]); !slices.Equal(got, tt.want) {
				t.Errorf("Arrivals() = %+v, want %+v", got, tt.want)
			}
		})
	}
}
