package broker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func TestTheConsumerTimeoutIsComparedWhereItCanBeSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	handler := &spec.Handler{Kind: spec.Exec, Timeout: 30 * time.Second}
	holds := func(q *spec.Queue) {
		q.Handler, q.Delay = handler, &spec.Delay{Strategy: "hold"}
		q.Backoff = &spec.Backoff{Initial: time.Minute, Factor: 1}
	}
	with := func(ms int64) func(*spec.Queue) {
		return func(q *spec.Queue) {
			holds(q)
			q.Type = spec.Quorum // 4.3 refuses the argument on classic queues
			q.Arguments = map[string]any{"x-consumer-timeout": ms}
		}
	}
	top := b.compile(queues(
		queue("plain", func(q *spec.Queue) { q.Handler = handler }),
		queue("unseen", holds),
		queue("enough", with(120_000)),
		queue("argued", with(60_000)),
		queue("ruled", holds),
		queue("slow", func(q *spec.Queue) { q.Handler = handler }),
		queue("topology only", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "hold"} }),
	))
	b.apply(top)
	if b.ownTimeouts() {
		b.api(http.MethodPut, "policies/"+b.vhost+"/short", map[string]any{
			"pattern": "^(ruled|slow)$", "definition": map[string]any{"consumer-timeout": 20_000}, "apply-to": "queues",
		})
	}
	r := b.eventually(top, func(r *broker.Report) bool { return !b.ownTimeouts() || len(warnings(r)) == 3 })
	if r.Failed() {
		t.Errorf("the check failed: %v", lines(r))
	}
	const unseen = "the node's consumer_timeout (30m unless configured) is not visible; the spec lets a delivery stay unacknowledged for 90s"
	want(t, find(t, r, "consumer timeout", "unseen"), broker.NotVerified, unseen)
	for _, f := range r.Findings {
		if f.Kind == "consumer timeout" && (f.Name == "plain" || f.Name == "topology only") {
			t.Errorf("nothing is held there: %s", f)
		}
	}
	if !b.ownTimeouts() {
		for _, name := range []string{"enough", "argued", "ruled"} {
			want(t, find(t, r, "consumer timeout", name), broker.NotVerified, unseen)
		}
		return
	}
	want(t, find(t, r, "consumer timeout", "enough"), broker.OK, "")
	want(t, find(t, r, "consumer timeout", "argued"), broker.Warned, "x-consumer-timeout is 1m: a delivery that stays unacknowledged for 90s")
	want(t, find(t, r, "consumer timeout", "ruled"), broker.Warned, "the policy's consumer-timeout is 20s")
	want(t, find(t, r, "consumer timeout", "slow"), broker.Warned, "unacknowledged for 30s")
}

// ownTimeouts reports whether queues of this server may have a timeout of their own.
func (b *bundle) ownTimeouts() bool { return b.server().AtLeast(3, 12) }
