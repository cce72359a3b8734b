package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/e2e/ledger"
	"github.com/rsctl/rsctl/e2e/rabbit"
)

var testPlan plan

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "rsctl-chaos-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary, err := buildRsctl(dir)
	if err != nil {
		panic(err)
	}
	testPlan = plan{binary: binary, length: time.Second}
	// These tests wait for brokers more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// series is that of the broker under test, for private nodes.
func series(t *testing.T) string {
	t.Helper()
	version := os.Getenv("RSCTL_BROKER_VERSION")
	for _, s := range rabbit.Series() {
		if len(version) > len(s) && version[:len(s)+1] == s+"." {
			return s
		}
	}
	return "" // what RSCTL_E2E_SERIES says, or the installed one
}

// faultsAt are the faults that need a kind of broker.
func faultsAt(place where) []fault {
	var chosen []fault
	for _, f := range faults() {
		if f.where == place {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

func TestNoFaultLosesAMessage(t *testing.T) {
	t.Parallel()
	v := venue{URL: os.Getenv("RSCTL_AMQP_URL"), management: os.Getenv("RSCTL_MANAGEMENT_URL")}
	if v.URL == "" || v.management == "" {
		t.Fatal("this test needs RabbitMQ: run make test, or set RSCTL_AMQP_URL and RSCTL_MANAGEMENT_URL")
	}
	for _, f := range faultsAt(anyBroker) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			hold(t, f, play(t.Context(), v, f, testPlan))
		})
	}
}

func TestNoSettingOfANodeLosesAMessage(t *testing.T) { t.Parallel(); playAt(t, ownNode, 1) }

func TestNoEndOfANodeLosesAMessage(t *testing.T) { t.Parallel(); playAt(t, mortalNode, 1) }

func TestTheLossOfALeaderLosesNoMessage(t *testing.T) { t.Parallel(); playAt(t, cluster, 3) }

// playAt plays one fault after the other on nodes that are started for them.
func playAt(t *testing.T, place where, nodes int) {
	t.Helper()
	v := start(t, nodes)
	for _, f := range faultsAt(place) {
		t.Run(f.name, func(t *testing.T) { hold(t, f, play(t.Context(), v, f, testPlan)) })
	}
}

// A classic queue has to copy what failed, and the broker takes no copies during
// an alarm: what succeeds must go on all the same.
func TestWhileAnAlarmIsOnSuccessesAreAckedAndTheQueueDrains(t *testing.T) {
	t.Parallel()
	const total, failing = 500, 25 // fewer than prefetch allows
	v := start(t, 1)
	q := classic
	q.plan = func(i int) ledger.Plan {
		p := ledger.Healthy(i)
		if i%20 == 0 {
			p = ledger.Plan{Outcome: ledger.Retry, Times: 1}
		}
		return p
	}
	s, err := newStage(t.Context(), v, fault{queues: []queue{q}}, testPlan.binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	load := &ledger.Load{Ledger: s.ledger, URLs: s.urls, Queue: q.name, Plan: q.plan, Total: total}
	load.Run(t.Context())
	must(t, s.ctl(t, "set_vm_memory_high_watermark", "0.000001"))
	s.drain = 5 * time.Second
	must(t, s.run())
	must(t, s.whileRunning(t.Context(), "all but the failing to be acked during the alarm", func() bool {
		a, err := s.ledger.Account(ledger.Found{}, ledger.Rules{Cap: attempts})
		ready, readyErr := s.ready()
		return err == nil && readyErr == nil && a.Acked == total-failing && a.Duplicates == 0 && ready == 0
	}))
	// The failing ones wait for the alarm to end; the process must not.
	if err := s.stop(); err != nil && !s.processes[0].cutShort() {
		t.Fatal(err)
	}
	must(t, s.ctl(t, "set_vm_memory_high_watermark", "0.4"))
	must(t, s.run())
	must(t, s.rest(t.Context()))
	a, err := s.ledger.Account(ledger.Found{}, ledger.Rules{Cap: attempts})
	// A copy that was sent just before the broker blocked its connection is in doubt
	// when the process stops, and may arrive when the alarm is over.
	if err != nil || a.Acked != total || a.Duplicates > failing {
		t.Errorf("%d of %d are acked, %d more than once, %v; want at most the %d that fail", a.Acked, total, a.Duplicates, err, failing)
	}
}

func (s *scenario) ctl(t *testing.T, args ...string) error {
	t.Helper()
	_, err := s.nodes[0].Ctl(t.Context(), args...)
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, nodes int) venue {
	t.Helper()
	v, stop, err := startVenue(t.Context(), nodes, rabbit.Options{Series: series(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// hold judges one row.
func hold(t *testing.T, f fault, row ledger.Row) {
	t.Helper()
	a := row.Account
	t.Logf("%d strikes; %d in, %d acked, %d dead-lettered, %d deleted, %d duplicates, %d over the cap",
		row.Strikes, a.In, a.Acked, a.Dead, a.Deleted, a.Duplicates, a.OverCap)
	if row.Err != nil {
		t.Error(row.Err)
	}
	if len(a.Lost) > 0 {
		t.Errorf("%d messages are lost: %v", len(a.Lost), a.Lost[:min(len(a.Lost), 10)])
	}
	if a.In == 0 || a.Acked == 0 || row.Strikes == 0 {
		t.Errorf("nothing happened")
	}
	if n := a.Work + a.Waiting; n > 0 {
		t.Errorf("%d messages are left in their queues", n)
	}
	if n := len(a.HealthyDead); n > 0 {
		t.Logf("%d of the dead letters would have been acked within the cap", n)
		if row.MayDie >= 0 && n > row.MayDie {
			t.Errorf("at most %d may be: %v", row.MayDie, a.HealthyDead[:min(n, 10)])
		}
	}
	if f.name == "rolling restart of five" && since43(t) && len(a.HealthyDead) > 0 {
		t.Errorf("%d healthy messages were dead-lettered", len(a.HealthyDead))
	}
}

// since43 reports whether a hand-back spends no attempt of a quorum queue.
func since43(t *testing.T) bool { return series(t) == "4.3" }
