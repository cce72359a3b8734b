package topology_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// conformance has one entry for every way to write every strategy. A copy that
// waits on the broker must come back no sooner than its delay d and before
// d + step(d).
var conformance = []struct {
	name     string
	delay    spec.Delay
	mixesTTL bool // one queue, many TTLs: short delays wait behind long ones
	step     func(d time.Duration) time.Duration
}{
	{name: "timer", delay: spec.Delay{Strategy: "timer"}},
	{name: "hold", delay: spec.Delay{Strategy: "hold"}},
	{name: "native", delay: spec.Delay{Strategy: "native", Min: time.Second, Max: time.Minute}},
	{name: "dlx_ttl", delay: spec.Delay{Strategy: "dlx_ttl"}, mixesTTL: true, step: constant(time.Millisecond)},
	{name: "dlx_ttl with tiers", delay: spec.Delay{Strategy: "dlx_ttl", Tiers: tiers}, step: nextTier},
	{name: "plugin_dme", delay: spec.Delay{Strategy: "plugin_dme"}, step: constant(time.Millisecond)},
	{name: "levels", delay: spec.Delay{Strategy: "levels"}, step: constant(time.Second)},
}

var tiers = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}

func constant(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

// nextTier allows the whole tier: the smallest one that is long enough.
func nextTier(d time.Duration) time.Duration {
	i := slices.IndexFunc(tiers, func(t time.Duration) bool { return t >= d })
	return tiers[i] - d + 1
}

// names of queues that a strategy must keep apart although they look alike to
// routing keys, patterns or suffixes.
var names = []string{"orders", "eu.orders", "orders.eu", "*", "#", "a.#", "%23", "%2A", ".", "a b\u00e9",
	strings.Repeat("x", 240), strings.Repeat("x", 241), strings.Repeat("#", 190)}

func TestEveryStrategyIsInTheConformanceTest(t *testing.T) {
	t.Parallel()
	var covered []string
	for _, c := range conformance {
		covered = append(covered, c.delay.Strategy)
	}
	slices.Sort(covered)
	if got := slices.Compact(covered); !slices.Equal(got, topology.Strategies()) {
		t.Errorf("covered %q, the registry has %q", got, topology.Strategies())
	}
}

func TestTheWaitingQueuesAreThoseWhereCopiesWait(t *testing.T) {
	t.Parallel()
	for _, c := range conformance {
		q := spec.Queue{Name: "orders", Type: spec.Quorum, Durable: true, Delay: &c.delay}
		got := topology.WaitingQueues(&q)
		p := topology.Policy(&q)
		if p.Delay.Mode != settle.ModeCopy || p.Delay.Route(1).Queue == "" {
			if len(got) != 0 {
				t.Errorf("%s: %q, want none that shows what waits", c.name, got)
			}
			continue
		}
		if slices.Contains(got, "rsctl.v1.undelivered") {
			t.Errorf("%s: nothing comes back from the undelivered queue", c.name)
		}
		for _, d := range delays(p.Delay.Max) {
			if to := p.Delay.Route(d).Queue; !slices.Contains(got, to) {
				t.Errorf("%s: a copy waits in %q, which is not among %q", c.name, to, got)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range conformance {
		for _, typ := range []spec.QueueType{spec.Classic, spec.Quorum} {
			t.Run(fmt.Sprintf("%s on %s", c.name, typ), func(t *testing.T) {
				t.Parallel()
				var s spec.Spec
				for _, name := range names {
					s.Queues = append(s.Queues, spec.Queue{Name: name, Type: typ, Durable: true, Delay: &c.delay})
				}
				top := topology.Compile(&s, topology.Server{})
				if again := topology.Compile(&s, topology.Server{}); !reflect.DeepEqual(top, again) {
					t.Error("a second Compile differs")
				}
				if ps := topology.Problems(&s); len(ps) > 0 {
					t.Errorf("names collide: %v", ps)
				}
				ttls := map[string]map[time.Duration]bool{}
				for i := range s.Queues {
					p := topology.Policy(&s.Queues[i])
					if p.Delay == nil || p.Delay.Strategy != c.delay.Strategy {
						t.Fatalf("policy of %q: %+v", p.Queue, p.Delay)
					}
					if p.Delay.Mode != settle.ModeCopy {
						if p.Delay.Route != nil || c.step != nil {
							t.Fatalf("mode %d has a route", p.Delay.Mode)
						}
						continue
					}
					for _, d := range delays(p.Delay.Max) {
						comesBack(t, walk{top, ttls}, p, d, c.step(d))
					}
				}
				for name, set := range ttls {
					if len(set) > 1 && !c.mixesTTL {
						t.Errorf("queue %q holds messages of %d TTLs: a short one waits behind a long one", name, len(set))
					}
				}
			})
		}
	}
}

// delays are those worth trying up to a limit.
func delays(limit time.Duration) []time.Duration {
	all := []time.Duration{1, time.Millisecond, time.Millisecond + 1, 999 * time.Millisecond, time.Second,
		1500 * time.Millisecond, 5 * time.Second, 5*time.Second + 1, time.Minute, 7 * time.Minute, time.Hour, limit - 1, limit}
	return slices.DeleteFunc(all, func(d time.Duration) bool { return d > limit })
}

func comesBack(t *testing.T, w walk, p settle.Policy, d, step time.Duration) {
	t.Helper()
	to := p.Delay.Route(d)
	if again := p.Delay.Route(d); again != to {
		t.Errorf("Route(%v) = %+v, then %+v", d, to, again)
	}
	if len(to.Key) > 255 {
		t.Errorf("Route(%v) has a routing key of %d bytes", d, len(to.Key))
	}
	if to.NotMandatory != (to.XDelay > 0) {
		t.Errorf("Route(%v): not mandatory %t with x-delay %v", d, to.NotMandatory, to.XDelay)
	}
	ends := w.publish(message{exchange: to.Exchange, key: to.Key, expiration: to.Expiration, xdelay: to.XDelay}, p.Queue)
	if len(ends) != 1 {
		t.Errorf("Route(%v) of %.30q leads to %d places: %+v", d, p.Queue, len(ends), ends)
		return
	}
	if end := ends[0]; end.queue != p.Queue || end.waited < d || end.waited >= d+step {
		t.Errorf("Route(%v) of %.30q leads to %.30q after %v; want the queue after at least the delay and less than %v more", d, p.Queue, end.queue, end.waited, step)
	}
}

// walk routes messages through a topology in memory, as the server does.
type walk struct {
	*topology.Topology
	ttls map[string]map[time.Duration]bool // seen, by queue
}

type message struct {
	exchange, key      string
	expiration, xdelay time.Duration
	waited             time.Duration
}

type end struct {
	queue  string
	waited time.Duration
}

// publish returns where m comes to rest: in the queue home, or where nothing
// takes it further.
func (w walk) publish(m message, home string) []end {
	var ends []end
	for _, name := range w.route(m.exchange, m.key, 0) {
		if x := w.exchange(m.exchange); x != nil && x.Type == topology.DelayedMessageType {
			m.waited, m.xdelay = m.waited+m.xdelay, 0
		}
		q := w.queue(name)
		dlx, dead := "", false
		if q != nil {
			dlx, dead = q.Arguments["x-dead-letter-exchange"].(string)
		}
		if name == home || q == nil || !dead {
			ends = append(ends, end{name, m.waited})
			continue
		}
		ends = append(ends, w.publish(w.expire(m, q, dlx), home)...)
	}
	return ends
}

func (w walk) expire(m message, q *topology.Queue, dlx string) message {
	ttl := m.expiration
	if own, ok := q.Arguments["x-message-ttl"].(int64); ok && (ttl == 0 || time.Duration(own)*time.Millisecond < ttl) {
		ttl = time.Duration(own) * time.Millisecond
	}
	if w.ttls[q.Name] == nil {
		w.ttls[q.Name] = map[time.Duration]bool{}
	}
	w.ttls[q.Name][ttl] = true
	next := message{exchange: dlx, key: m.key, waited: m.waited + ttl}
	if key, ok := q.Arguments["x-dead-letter-routing-key"].(string); ok {
		next.key = key
	}
	return next
}

// route returns the queues that a key reaches from an exchange.
func (w walk) route(exchange, key string, depth int) []string {
	if exchange == "" {
		if w.queue(key) == nil {
			return nil
		}
		return []string{key}
	}
	x := w.exchange(exchange)
	if x == nil || depth > 64 {
		return nil
	}
	var out []string
	for _, b := range w.Bindings {
		if b.Source != exchange || !matches(x.Type, b.RoutingKey, key) {
			continue
		}
		if b.ToExchange {
			out = append(out, w.route(b.Destination, key, depth+1)...)
		} else {
			out = append(out, b.Destination)
		}
	}
	if alternate, ok := x.Arguments["alternate-exchange"].(string); ok && len(out) == 0 {
		return w.route(alternate, key, depth+1)
	}
	return out
}

func (w walk) exchange(name string) *topology.Exchange {
	i := slices.IndexFunc(w.Exchanges, func(x topology.Exchange) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Exchanges[i]
}

func (w walk) queue(name string) *topology.Queue {
	i := slices.IndexFunc(w.Queues, func(q topology.Queue) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Queues[i]
}

func matches(exchangeType, pattern, key string) bool {
	switch exchangeType {
	case "fanout":
		return true
	case "topic":
		return topic(strings.Split(pattern, "."), strings.Split(key, "."))
	}
	return pattern == key
}

// topic is the server's rule: "*" is one word, "#" any number of them.
func topic(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return topic(pattern[1:], key) || len(key) > 0 && topic(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && topic(pattern[1:], key[1:])
}

func TestWhatNoQueueTakesLeavesTheLadder(t *testing.T) {
	t.Parallel()
	s := spec.Spec{Queues: []spec.Queue{{Name: "orders", Type: spec.Quorum, Delay: &spec.Delay{Strategy: "levels"}}}}
	to := topology.Policy(&s.Queues[0]).Delay.Route(3 * time.Second)
	w := walk{topology.Compile(&s, topology.Server{}), map[string]map[time.Duration]bool{}}
	got := w.publish(message{exchange: to.Exchange, key: to.Key + "x"}, "orders")
	if want := []end{{"rsctl.v1.undelivered", 3 * time.Second}}; !slices.Equal(got, want) {
		t.Errorf("ends in %+v, want %+v", got, want)
	}
}

func TestTiersNeverComeEarlyAndClampAtTheLargest(t *testing.T) {
	t.Parallel()
	q := spec.Queue{Name: "orders", Type: spec.Classic, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{10 * time.Minute, 5 * time.Second, time.Minute, 60 * time.Second}}}
	d := topology.Policy(&q).Delay
	if d.Max != 10*time.Minute {
		t.Errorf("Max = %v, want the largest tier", d.Max)
	}
	for _, tt := range []struct {
		name  string
		delay time.Duration
		queue string
	}{
		{"shorter than every tier", time.Millisecond, "orders.retry.5s"},
		{"exactly a tier", 5 * time.Second, "orders.retry.5s"},
		{"just above a tier", 5*time.Second + 1, "orders.retry.1m"},
		{"above the largest, which Max prevents", time.Hour, "orders.retry.10m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := d.Route(tt.delay); got.Queue != tt.queue || got.Key != tt.queue || got.Exchange != "" {
				t.Errorf("Route(%v) = %+v, want queue %q", tt.delay, got, tt.queue)
			}
		})
	}
}

func TestStrategyLimitsAreTheServers(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]time.Duration{
		"dlx_ttl":    315360000000 * time.Millisecond,
		"plugin_dme": 4294967295 * time.Millisecond,
		"levels":     (1<<28 - 1) * time.Second,
		"timer":      0,
		"hold":       0,
	} {
		q := spec.Queue{Name: "orders", Type: spec.Classic, Delay: &spec.Delay{Strategy: strategy}}
		if got := topology.Policy(&q).Delay.Max; got != want {
			t.Errorf("%s: Max = %v, want %v", strategy, got, want)
		}
	}
}

func TestTheLadderIsSharedAndItsLastPlaceKeepsEverything(t *testing.T) {
	t.Parallel()
	levels := &spec.Delay{Strategy: "levels"}
	s := queues(spec.Queue{Name: "a", Type: spec.Classic, Delay: levels}, spec.Queue{Name: "b", Type: spec.Quorum, Delay: levels})
	for version, limit := range map[string]any{"3.13.7": nil, "4.0.5": int64(-1), "": int64(-1)} {
		top := topology.Compile(&s, topology.Server{Version: version})
		if x, q, b := len(top.Exchanges), len(top.Queues), len(top.Bindings); x != 30 || q != 29+2 || b != 1+2*28+2 {
			t.Errorf("%d exchanges, %d queues, %d bindings", x, q, b)
		}
		nowhere := walk{Topology: top}.queue("rsctl.v1.undelivered")
		if nowhere.Arguments["x-delivery-limit"] != limit || !nowhere.AcceptExisting || !slices.Equal(nowhere.Origin.Queues, []string{"a", "b"}) {
			t.Errorf("RabbitMQ %q: %+v, want limit %v", version, nowhere, limit)
		}
		for _, q := range top.Queues {
			if strings.Contains(q.Name, ".level-") && q.Arguments["x-dead-letter-strategy"] != "at-least-once" {
				t.Errorf("%s can lose copies: %v", q.Name, q.Arguments)
			}
		}
	}
}
