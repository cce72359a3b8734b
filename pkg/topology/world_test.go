package topology_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// Whatever a strategy compiles, its copies arrive; and each part of it that a
// copy uses is needed.
func TestCopiesArriveThroughWhatIsCompiledAndThroughNothingLess(t *testing.T) {
	t.Parallel()
	for _, c := range conformance {
		for _, typ := range []spec.QueueType{spec.Classic, spec.Quorum} {
			s := &spec.Spec{Queues: []spec.Queue{{Name: "orders", Type: typ, Durable: true, Delay: &c.delay}}}
			top := topology.Compile(s, topology.Server{})
			whole := func() topology.World {
				w := topology.Known(top)
				w.Complete = true
				return w
			}
			for _, trip := range top.Trips {
				w := whole()
				if d := w.Arrives(trip); d != nil {
					t.Errorf("%s on %s: %+v: %s", c.name, typ, trip, d.Text)
				}
			}
			for _, q := range top.Queues {
				if q.Name == "orders" || q.AcceptExisting {
					continue
				}
				w := whole()
				w.Queues = map[string]map[string]any{}
				for _, other := range top.Queues {
					w.Queues[other.Name] = other.Arguments
				}
				w.Queues[q.Name] = map[string]any{"x-queue-type": "classic"}
				if !anyWrong(w, top.Trips) {
					t.Errorf("%s: %s leads nowhere, and nothing is wrong", c.name, q.Name)
				}
			}
			for i, b := range top.Bindings {
				if b.Source == "rsctl.v1.undelivered" {
					continue
				}
				w := whole()
				w.Bindings = append(append([]topology.Binding{}, top.Bindings[:i]...), top.Bindings[i+1:]...)
				// No copy needs to pass the highest level: it starts at its own.
				if !anyWrong(w, top.Trips) && !(b.Source == "rsctl.v1.level-27" && b.ToExchange) {
					t.Errorf("%s: without %s -> %s (%s) nothing is wrong", c.name, b.Source, b.Destination, b.RoutingKey)
				}
			}
		}
	}
}

func anyWrong(w topology.World, trips []topology.Trip) bool {
	for _, trip := range trips {
		if d := w.Arrives(trip); d != nil && d.Wrong {
			return true
		}
	}
	return false
}

func TestArrives(t *testing.T) {
	t.Parallel()
	type args = map[string]any
	back := args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
	waiting := topology.Trip{To: "orders", Key: "orders.retry", Expires: true}
	plugin := topology.Trip{To: "orders", Exchange: "orders.delay", Key: "orders", Delayed: true}
	retries := topology.Trip{To: "orders", Exchange: "retries", Key: "orders"}
	delayed := topology.Exchange{Name: "orders.delay", Type: topology.DelayedMessageType, Arguments: args{"x-delayed-type": "direct"}}
	bound := func(source, to, key string) topology.Binding {
		return topology.Binding{Source: source, Destination: to, RoutingKey: key}
	}
	tests := []struct {
		name      string
		trip      topology.Trip
		queues    map[string]args
		exchanges []topology.Exchange
		bindings  []topology.Binding
		complete  bool
		wrong     bool
		want      string // "": arrives
	}{
		{name: "a waiting queue that leads back", trip: waiting, queues: map[string]args{"orders.retry": back}},
		{name: "one that leads nowhere", trip: waiting, queues: map[string]args{"orders.retry": {}}, wrong: true, want: "no x-dead-letter-exchange"},
		{name: "one that leads to another queue", trip: waiting, wrong: true, want: `to queue "bills", not to "orders"`,
			queues: map[string]args{"orders.retry": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bills"}}},
		{name: "one without a routing key goes in circles", trip: waiting, queues: map[string]args{"orders.retry": {"x-dead-letter-exchange": ""}}, wrong: true, want: "circles"},
		{name: "one that nobody may look at", trip: waiting, want: `the arguments of queue "orders.retry"`},
		{name: "one that is not there", trip: waiting, complete: true, wrong: true, want: "does not exist"},
		{name: "a stream", trip: waiting, queues: map[string]args{"orders.retry": {"x-queue-type": "stream"}}, wrong: true, want: "is a stream"},
		{name: "one that leads back through an exchange", trip: waiting, queues: map[string]args{"orders.retry": {"x-dead-letter-exchange": "back"}},
			exchanges: []topology.Exchange{{Name: "back", Type: "topic"}}, bindings: []topology.Binding{bound("back", "orders", "*.retry")}, complete: true},
		{name: "one that leads through an unbound exchange", trip: waiting, queues: map[string]args{"orders.retry": {"x-dead-letter-exchange": "back"}},
			exchanges: []topology.Exchange{{Name: "back", Type: "topic"}}, bindings: []topology.Binding{bound("back", "orders", "other")}, complete: true, wrong: true, want: "sends nothing"},
		{name: "one whose exchange cannot be seen", trip: waiting, queues: map[string]args{"orders.retry": {"x-dead-letter-exchange": "back"}}, want: `exchange "back"`},
		{name: "a delayed exchange", trip: plugin, exchanges: []topology.Exchange{delayed}, bindings: []topology.Binding{bound("orders.delay", "orders", "orders")}, complete: true},
		{name: "one of another type", trip: plugin, exchanges: []topology.Exchange{{Name: "orders.delay", Type: "direct"}}, wrong: true, want: "holds nothing back"},
		{name: "an unbound one", trip: plugin, exchanges: []topology.Exchange{delayed}, complete: true, wrong: true, want: "sends nothing"},
		{name: "one whose bindings cannot be seen", trip: plugin, exchanges: []topology.Exchange{delayed}, want: "the bindings"},
		{name: "retries through a fanout", trip: retries, exchanges: []topology.Exchange{{Name: "retries", Type: "fanout"}}, bindings: []topology.Binding{bound("retries", "orders", "")}, complete: true},
		{name: "retries through headers cannot be followed", trip: retries, exchanges: []topology.Exchange{{Name: "retries", Type: "headers"}}, complete: true, want: "the routing of exchange"},
		{name: "retries to another queue", trip: retries, exchanges: []topology.Exchange{{Name: "retries", Type: "direct"}}, queues: map[string]args{"bills": {}},
			bindings: []topology.Binding{bound("retries", "bills", "orders")}, complete: true, wrong: true, want: `queue "bills"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := topology.World{Queues: tt.queues, Exchanges: map[string]topology.Exchange{}, Bindings: tt.bindings, Complete: tt.complete}
			for _, x := range tt.exchanges {
				w.Exchanges[x.Name] = x
			}
			switch d := w.Arrives(tt.trip); {
			case d == nil && tt.want != "":
				t.Errorf("arrives; want %q", tt.want)
			case d != nil && (tt.want == "" || d.Wrong != tt.wrong || !strings.Contains(d.Text, tt.want)):
				t.Errorf("wrong %t, %q; want %t, %q", d.Wrong, d.Text, tt.wrong, tt.want)
			}
		})
	}
}

func TestATripIsMadeForEveryWayOfCopies(t *testing.T) {
	t.Parallel()
	q := spec.Queue{
		Name: "orders", Type: spec.Classic, MaxAttempts: 3, DeadLetter: "orders.dead",
		RetryPublisher: &spec.RetryPublisher{Exchange: "retries"}, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{time.Second, time.Minute}},
	}
	top := topology.Compile(&spec.Spec{Queues: []spec.Queue{q, {Name: "bills", Type: spec.Classic}}}, topology.Server{})
	var got []string
	for _, trip := range top.For("orders").Trips {
		got = append(got, trip.What+" "+trip.Exchange+"/"+trip.Key+" "+trip.To)
	}
	want := "delayed retries /orders.retry.1s orders, delayed retries /orders.retry.1m orders, retries retries/orders orders, dead letters retries/orders.dead orders.dead"
	if strings.Join(got, ", ") != want {
		t.Errorf("trips\n got %s\nwant %s", strings.Join(got, ", "), want)
	}
	if len(top.For("bills").Trips) != 0 {
		t.Error("a queue without copies has trips")
	}
}

// Many queues share one ladder: the way of each is short all the same.
func TestManyQueuesAreProvedInLittleTime(t *testing.T) {
	t.Parallel()
	s := &spec.Spec{}
	for i := range 500 {
		s.Queues = append(s.Queues, spec.Queue{Name: fmt.Sprintf("q%d", i), Type: spec.Classic, Durable: true, Delay: &spec.Delay{Strategy: "levels"}})
	}
	top := topology.Compile(s, topology.Server{})
	w := topology.Known(top)
	began := time.Now()
	for _, trip := range top.Trips {
		if d := w.Arrives(trip); d != nil {
			t.Fatal(d.Text)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d trips took %s", len(top.Trips), took)
	}
}
