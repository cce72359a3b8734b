package settle_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

//go:embed testdata/settlement.md.tmpl
var settlementTemplate string

type docGroup struct {
	Title, Text string
	Sections    []docSection
}

type docSection struct {
	Title, Text string
	Rows        []docRow
}

type docRow struct{ Outcome, When, Steps, Then string }

func TestSettlementDocIsWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	tmpl := template.Must(template.New("settlement").Parse(settlementTemplate))
	if err := tmpl.Execute(&want, map[string]any{"Groups": docGroups(), "Failures": failureSections()}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "settlement.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/settlement.md is stale; run: UPDATE=1 go test ./pkg/settle")
	}
}

func docGroups() []docGroup {
	return []docGroup{
		{"Classic queues", "", classicSections()},
		{"Quorum queues", "", quorumSections()},
		{"Delayed retries", delayText, delaySections()},
	}
}

const delayText = `
Only the rows of ` + "`retry_after`" + ` are shown; the others are as above. A delay above
what a strategy can hold is cut to that, with a warning. A delivery at the cap
never waits again.
`

func classicSections() []docSection {
	return []docSection{
		everyOutcome("Neither `max_attempts` nor `delay`",
			"A plain requeue of a message that has been requeued before waits a moment, so\nthat a message that always fails cannot spin the broker.", spec.Queue{Type: spec.Classic}),
		everyOutcome("`max_attempts: 3` with `dead_letter`",
			"On a queue with a dead-letter route of its own (an argument or a policy), every\nreject in this table also sends the original there; `retry_original: ack` avoids\nthat.", spec.Queue{Type: spec.Classic, MaxAttempts: 3, DeadLetter: "orders.dead"}),
		onlyRetries("`max_attempts: 100` with `dead_letter`, `retry` only", spec.Queue{Type: spec.Classic, MaxAttempts: 100, DeadLetter: "orders.dead"}),
		everyOutcome("`max_attempts: 3` with `dead_letter` and `retry_original: ack`", "",
			spec.Queue{Type: spec.Classic, MaxAttempts: 3, DeadLetter: "orders.dead", RetryOriginal: spec.AckOriginal}),
		everyOutcome("`max_attempts: 3` alone", "", spec.Queue{Type: spec.Classic, MaxAttempts: 3}),
		everyOutcome("`max_attempts: 1` with `dead_letter`", "", spec.Queue{Type: spec.Classic, MaxAttempts: 1, DeadLetter: "orders.dead"}),
		everyOutcome("`max_attempts: 3` with `dead_letter` and `backoff: 5s`", "",
			spec.Queue{Type: spec.Classic, MaxAttempts: 3, DeadLetter: "orders.dead", Backoff: &spec.Backoff{Initial: 5 * time.Second, Factor: 1}}),
	}
}

func quorumSections() []docSection {
	return []docSection{
		everyOutcome("Neither `max_attempts` nor `delay`",
			"Since RabbitMQ 4.0 a quorum queue without a limit of its own drops a message at\nits 21st return, or dead-letters it when the queue has a dead-letter route.", spec.Queue{Type: spec.Quorum}),
		everyOutcome("`max_attempts: 3` with `dead_letter`", "", spec.Queue{Type: spec.Quorum, MaxAttempts: 3, DeadLetter: "orders.dead"}),
		everyOutcome("`max_attempts: 3` with `dead_letter` and `dead_letter_by: rsctl`",
			"An attempt that ends with the process is counted by the server alone, which\nstill moves a message past its limit itself.",
			spec.Queue{Type: spec.Quorum, MaxAttempts: 3, DeadLetter: "orders.dead", DeadLetterBy: spec.DeadLetterByRsctl}),
		everyOutcome("`max_attempts: 1` with `dead_letter`", "", spec.Queue{Type: spec.Quorum, MaxAttempts: 1, DeadLetter: "orders.dead"}),
	}
}

func failureSections() []docSection {
	return []docSection{
		everyFailure("A classic queue with `max_attempts: 3` and `dead_letter`", spec.Queue{Type: spec.Classic, MaxAttempts: 3, DeadLetter: "orders.dead"}),
		everyFailure("A classic queue with `max_attempts: 3` alone", spec.Queue{Type: spec.Classic, MaxAttempts: 3}),
		everyFailure("A quorum queue with `max_attempts: 3`, `dead_letter` and `delay: dlx_ttl`",
			spec.Queue{Type: spec.Quorum, MaxAttempts: 3, DeadLetter: "orders.dead", Delay: &spec.Delay{Strategy: "dlx_ttl"}}),
	}
}

func everyFailure(title string, q spec.Queue) docSection {
	q.Name = "orders"
	s := docSection{Title: title}
	for _, r := range settle.FailureTable(topology.Policy(&q)) {
		s.Rows = append(s.Rows, docRow{r.Failure.String(), r.When, describeAll(r.Steps), r.Then})
	}
	return s
}

func delaySections() []docSection {
	strategies := []struct {
		delay spec.Delay
		types []spec.QueueType
	}{
		{spec.Delay{Strategy: "timer"}, []spec.QueueType{spec.Classic}},
		{spec.Delay{Strategy: "hold"}, []spec.QueueType{spec.Classic, spec.Quorum}},
		{spec.Delay{Strategy: "dlx_ttl"}, []spec.QueueType{spec.Classic, spec.Quorum}},
		{spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}}, []spec.QueueType{spec.Classic, spec.Quorum}},
		{spec.Delay{Strategy: "plugin_dme"}, []spec.QueueType{spec.Classic, spec.Quorum}},
		{spec.Delay{Strategy: "levels"}, []spec.QueueType{spec.Classic, spec.Quorum}},
		{spec.Delay{Strategy: "native", Min: time.Second, Max: time.Minute}, []spec.QueueType{spec.Quorum}},
	}
	var sections []docSection
	for _, s := range strategies {
		for _, typ := range s.types {
			q := spec.Queue{Type: typ, MaxAttempts: 3, DeadLetter: "orders.dead", Delay: &s.delay}
			sections = append(sections, onlyDelays(delayTitle(s.delay, typ), q))
		}
	}
	return sections
}

func delayTitle(d spec.Delay, typ spec.QueueType) string {
	title := fmt.Sprintf("`%s` on a %s queue, `max_attempts: 3`", d.Strategy, typ)
	if len(d.Tiers) > 0 {
		return strings.Replace(title, "` on", "` with `tiers: [5s, 1m, 10m]` on", 1)
	}
	return title
}

func everyOutcome(title, text string, q spec.Queue) docSection {
	q.Name = "orders"
	var rows []docRow
	for _, r := range settle.Table(topology.Policy(&q)) {
		rows = append(rows, rowForDoc(r))
	}
	return docSection{title, text, rows}
}

func onlyRetries(title string, q spec.Queue) docSection {
	s := everyOutcome(title, "", q)
	s.Rows = slices.DeleteFunc(s.Rows, func(r docRow) bool { return r.Outcome != "`retry`" })
	return s
}

func onlyDelays(title string, q spec.Queue) docSection {
	s := everyOutcome(title, "", q)
	var delayed []docRow
	for _, r := range s.Rows {
		if strings.Contains(r.Outcome, "retry_after") {
			delayed = append(delayed, r)
		}
	}
	s.Rows = delayed
	return s
}

func rowForDoc(r settle.Row) docRow {
	return docRow{"`" + r.Outcome + "`", r.When, describeAll(r.Steps), r.Then}
}

func describeAll(steps []settle.Step) string {
	var texts []string
	for _, s := range steps {
		texts = append(texts, settle.Describe(s))
	}
	return strings.Join(texts, "<br>")
}
