package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

func TestADelayedRetryComesBackInTimeAndEndsAtTheCap(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	list := places(b)
	s := newStation(t, b, placesSpec(list, "2s", "1h", `    bindings: [{exchange: shop, routing_key: order.QUEUE}]
    max_attempts: 3
    dead_letter: QUEUE.dead
    handler: {exec: [./hook.sh]}
`))
	for _, p := range list {
		s.MustRsctl(nil, "-f", s.file, "publish", "--exchange", "shop", "--routing-key", "order."+p.queue,
			"--id", "m", "--body", "retry_after 2s\n", "--property", "expiration=60000")
	}
	run := s.run()
	for _, p := range list {
		runs := s.runs(p.queue, "m", 3)
		harness.Eventually(t, "a dead letter of "+p.queue, func() bool { return b.Ready(p.queue+".dead") == 1 })
		t.Run(p.queue, func(t *testing.T) {
			for i, e := range runs {
				wantRun(t, p, e, i+1)
				if i > 0 {
					gap := e.at.Sub(runs[i-1].at)
					within(t, fmt.Sprintf("attempt %d", i+1), gap, 2*time.Second)
					t.Logf("late by %v", (gap - 2*time.Second).Round(time.Millisecond))
				}
			}
		})
	}
	stop(t, run)
	for _, p := range list {
		if n := len(journal(t, s.log)[p.queue]); n != 3 {
			t.Errorf("%s: the handler ran %d times, want 3", p.queue, n)
		}
		dead := b.TakeN(p.queue+".dead", 1)[0]
		if dead.MessageId != "m" || b.Ready(p.queue) != 0 {
			t.Errorf("%s: %q is dead-lettered, %d are left", p.queue, dead.MessageId, b.Ready(p.queue))
		}
	}
}

// wantRun holds what a hook sees of a delayed retry.
func wantRun(t *testing.T, p place, e journalEntry, attempt int) {
	t.Helper()
	if e.Attempt != attempt || e.Exchange != "shop" || e.RoutingKey != "order."+p.queue {
		t.Errorf("run %d was attempt %d from %q with key %q; want attempt %d from shop with order.%s",
			attempt, e.Attempt, e.Exchange, e.RoutingKey, attempt, p.queue)
	}
	count, there := e.Headers["x-ruststream-retry-count"]
	switch {
	case attempt == 1 || p.uncounted:
		if there {
			t.Errorf("attempt %d carries the count %v although there was no copy", attempt, count)
		}
	case count != fmt.Sprint(attempt-1):
		t.Errorf("attempt %d carries the count %#v, want the text %q", attempt, count, fmt.Sprint(attempt-1))
	}
}

// stop ends a run gently.
func stop(t *testing.T, p *harness.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("run ended with %d\n%s", code, p.Output())
	}
}

func TestAShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	list := slices.DeleteFunc(places(b), func(p place) bool { return p.fixed })
	s := newStation(t, b, placesSpec(list, "1s", "1h", "    prefetch: 10\n    handler: {exec: [./hook.sh]}\n"))
	for _, p := range list {
		s.send(p.queue, "long", "retry_after 1h", "ack")
	}
	run := s.run()
	for _, p := range list {
		s.runs(p.queue, "long", 1)
	}
	for _, p := range list {
		if queue := p.waitingQueue("1h"); queue != "" {
			harness.Eventually(t, "the long one in "+queue, func() bool { return b.Ready(queue) == 1 })
		}
		s.send(p.queue, "short", "retry_after 1s", "ack")
	}
	for _, p := range list {
		if p.blocks {
			continue
		}
		runs := s.runs(p.queue, "short", 2)
		gap := runs[1].at.Sub(runs[0].at)
		t.Logf("%s: after %v", p.queue, gap.Round(time.Millisecond))
		within(t, p.queue+": the short one", gap, time.Second)
		if n := len(s.runs(p.queue, "long", 1)); n != 1 {
			t.Errorf("%s: the long one ran %d times", p.queue, n)
		}
	}
	for _, p := range list {
		if !p.blocks {
			continue
		}
		since := s.runs(p.queue, "short", 1)[0].at
		harness.Eventually(t, "three seconds to pass", func() bool { return time.Since(since) > 3*time.Second })
		harness.Eventually(t, "both to wait in "+p.queue, func() bool { return b.Ready(p.waitingQueue("1h")) == 2 })
		if n := len(s.runs(p.queue, "short", 1)); n != 1 {
			t.Errorf("%s: the short one ran %d times; want it behind the long one", p.queue, n)
		}
	}
	run.Kill()
	wantMixedDelaysTold(t, s, list)
}

// wantMixedDelaysTold looks for the warnings about what blocks, and only that.
func wantMixedDelaysTold(t *testing.T, s *station, list []place) {
	t.Helper()
	validate := s.Rsctl(nil, "-f", s.file, "validate")
	explain := s.MustRsctl(nil, "-f", s.file, "explain")
	for _, p := range list {
		warned := strings.Contains(validate.Stdout+validate.Stderr, fmt.Sprintf("delayed retries of queue %q share one waiting queue", p.queue))
		told := strings.Contains(explain.Stdout+explain.Stderr, fmt.Sprintf("delayed retries of queue %q share one waiting queue", p.queue))
		if warned != p.blocks || told != p.blocks {
			t.Errorf("%s: validate warns of mixed delays: %t, explain: %t; want %t", p.queue, warned, told, p.blocks)
		}
	}
}

func TestAMissingWaitingPlaceStopsTheStartAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	list := places(b)
	text := placesSpec(list, "1s", "30s", "    handler: {exec: [./hook.sh]}\n")
	s := newStation(t, b, strings.Replace(text, "declare_topology: true", "declare_topology: false", 1))
	for _, p := range list {
		s.send(p.queue, "m", "retry_after 1s", "ack")
	}
	gone := []string{
		`queue "ttl-classic.retry"`, `queue "ttl-quorum.retry"`, `queue "waits"`,
		`queue "tiers-classic.retry.30s"`, `queue "tiers-quorum.retry.1s"`,
		`queue "rsctl.v1.level-05"`, `exchange "rsctl.v1.level-03"`, `exchange "rsctl.v1.deliver"`,
	}
	if slices.ContainsFunc(list, func(p place) bool { return p.strategy == "plugin_dme" }) {
		gone = append(gone, `exchange "plugin-classic.delay"`, `exchange "later"`)
	}
	for _, object := range gone {
		kind, name, _ := strings.Cut(strings.ReplaceAll(object, `"`, ""), " ")
		remove(t, b, kind, name)
	}
	r := s.Rsctl(s.env, "-f", s.file, "run", "--log-format", "text")
	if r.Code != 1 {
		t.Errorf("run ended with %d; want 1\n%s", r.Code, r.Stderr)
	}
	check := s.Rsctl(s.env, "-f", s.file, "check")
	if check.Code != 1 {
		t.Errorf("check ended with %d, want 1", check.Code)
	}
	for _, object := range gone {
		if !strings.Contains(r.Stderr, object+": missing") {
			t.Errorf("run does not name %s:\n%s", object, r.Stderr)
		}
		if _, name, _ := strings.Cut(object, " "); !strings.Contains(check.Stdout, strings.Trim(name, `"`)) {
			t.Errorf("check does not name %s:\n%s", object, check.Stdout)
		}
	}
	for _, p := range list {
		if n := b.Ready(p.queue); n != 1 {
			t.Errorf("%s holds %d messages, want its 1", p.queue, n)
		}
	}
	s.MustRsctl(s.env, "-f", s.file, "apply")
	run := s.run()
	for _, p := range list {
		s.runs(p.queue, "m", 2)
	}
	stop(t, run)
}

func remove(t *testing.T, b *harness.Broker, kind, name string) {
	t.Helper()
	ch := b.Channel()
	defer ch.Close()
	var err error
	if kind == "queue" {
		_, err = ch.QueueDelete(name, false, false, false)
	} else {
		err = ch.ExchangeDelete(name, false, false)
	}
	if err != nil {
		t.Fatalf("delete %s %s: %v", kind, name, err)
	}
}

func TestTheDelaysExampleCanBeAppliedAndChecked(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	b.MustRsctl(nil, "-f", example(t, "delays.yaml"), "apply")
	r := b.MustRsctl(nil, "-f", example(t, "delays.yaml"), "check", "--management-url", b.ManagementURL)
	if !strings.Contains(r.Stdout, `consumer timeout "thumbnails"`) || !strings.Contains(r.Stdout, "not verified") {
		t.Errorf("check does not say that the server's consumer timeout cannot be seen:\n%s", r.Stdout)
	}
}
