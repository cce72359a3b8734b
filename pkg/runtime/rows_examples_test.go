package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// TestEveryRowOfEveryExample holds the table that rsctl explain prints for the
// queues of the examples against a real broker. Names are the test's own and
// delays are short; types, caps and strategies are the example's.
func TestEveryRowOfEveryExample(t *testing.T) {
	t.Parallel()
	offered := map[string]bool{}
	for _, mode := range modesOf(t) {
		offered[mode] = true
	}
	played := 0
	for _, file := range exampleFiles(t) {
		for _, example := range exampleQueues(t, file) {
			if d := example.Delay; d != nil && !offered[d.Strategy] {
				continue // needs a plugin or a server that this broker is not
			}
			for i, row := range settle.Table(topology.Policy(shortened(example, "q"))) {
				if row.Outcome == "retry_after" {
					continue // a delay that is clamped to weeks
				}
				played++
				t.Run(fmt.Sprintf("%s/%s/%d %s %s", filepath.Base(file), example.Name, i, row.Outcome, row.When), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					replayRow(b, b.declared(shortened(example, b.name())), row)
				})
			}
		}
	}
	if played < 20 {
		t.Errorf("only %d rows were played", played)
	}
}

func exampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return files
}

// exampleQueues returns the queues of a file that rsctl run would consume.
func exampleQueues(t *testing.T, file string) []spec.Queue {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, problems := spec.Parse(data, spec.Options{
		File:      file,
		Dir:       filepath.Dir(file),
		LookupEnv: func(string) (string, bool) { return "", false },
		ReadFile:  func(string) ([]byte, error) { return []byte("x"), nil },
	})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	var consumed []spec.Queue
	for _, q := range s.Queues {
		if q.Handler != nil {
			consumed = append(consumed, q)
		}
	}
	return consumed
}

// shortened is q under another name, by itself, with delays that a test can wait
// for.
func shortened(q spec.Queue, name string) *spec.Queue {
	q.Name, q.Bindings, q.Durable = name, nil, true
	q.DeadLetterExchange, q.DeadLetterRoutingKey, q.RetryPublisher = nil, nil, nil
	if q.DeadLetter != "" {
		q.DeadLetter = name + ".dead"
	}
	if q.Backoff != nil {
		q.Backoff = &spec.Backoff{Initial: replayDelay, Factor: 1}
	}
	if q.Delay != nil {
		d := *q.Delay
		d.WaitingQueue, d.Exchange = "", ""
		if d.Tiers != nil {
			d.Tiers = []time.Duration{replayDelay}
		}
		if d.Min > 0 {
			d.Min, d.Max = replayDelay, replayDelay
		}
		q.Delay = &d
	}
	return &q
}
