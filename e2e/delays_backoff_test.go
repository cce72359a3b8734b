package e2e

import (
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

// What a backoff of 1 s, 2 s, 4 s makes of a hook that fails and of one that
// answers a plain retry: a delayed retry, in the smallest tier that is enough.
func TestABackoffDelaysPlainRetriesAndFailedHooks(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	list := places(b)
	s := newStation(t, b, placesSpec(list, "1s", "3s", `    max_attempts: 5
    dead_letter: QUEUE.dead
    backoff: {initial: 1s, factor: 2}
    handler: {exec: [./hook.sh]}
`))
	for _, p := range list {
		s.send(p.queue, "m", "fail", "retry", "ack")
	}
	run := s.run()
	for _, p := range list {
		want := []time.Duration{time.Second, 2 * time.Second}
		switch {
		case p.fixed: // by the server, 1 s at most
			want = []time.Duration{time.Second, time.Second}
		case p.strategy == "dlx_ttl" && !p.blocks: // tiers
			want = []time.Duration{time.Second, 3 * time.Second}
		}
		runs := s.runs(p.queue, "m", 3)
		for i, d := range want {
			within(t, p.queue, runs[i+1].at.Sub(runs[i].at), d)
		}
	}
	stop(t, run)
	for _, p := range list {
		if n, left := len(journal(t, s.log)[p.queue]), b.Ready(p.queue)+b.Ready(p.queue+".dead"); n != 3 || left != 0 {
			t.Errorf("%s: %d runs and %d messages left; want 3 and none", p.queue, n, left)
		}
	}
}
