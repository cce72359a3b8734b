package main

import (
	"os"
	"testing"
	"time"

	"github.com/rsctl/rsctl/e2e/ledger"
	"github.com/rsctl/rsctl/e2e/rabbit"
)

var testPlan plan

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rsctl-chaos-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary, err := buildRsctl(dir)
	if err != nil {
		panic(err)
	}
	testPlan = plan{binary: binary, length: 2 * time.Second}
	return m.Run()
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

func TestNoFaultOfANodeLosesAMessage(t *testing.T) {
	t.Parallel()
	v := start(t, 1)
	for _, f := range faultsAt(ownNode) {
		t.Run(f.name, func(t *testing.T) { hold(t, f, play(t.Context(), v, f, testPlan)) })
	}
}

func TestTheLossOfALeaderLosesNoMessage(t *testing.T) {
	t.Parallel()
	v := start(t, 3)
	for _, f := range faultsAt(cluster) {
		t.Run(f.name, func(t *testing.T) { hold(t, f, play(t.Context(), v, f, testPlan)) })
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
	}
	if f.name == "rolling restart of five" && since43(t) && len(a.HealthyDead) > 0 {
		t.Errorf("%d healthy messages were dead-lettered", len(a.HealthyDead))
	}
}

// since43 reports whether a hand-back spends no attempt of a quorum queue.
func since43(t *testing.T) bool { return series(t) == "4.3" }
