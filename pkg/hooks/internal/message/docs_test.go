package message

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
)

func TestDocs_Metadata(t *testing.T) {
	t.Parallel()
	var shown, real map[string]any
	all := hooktest.Snippets(t, "json")
	if err := json.Unmarshal([]byte(all[len(all)-1]), &shown); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(AppendMetadata(nil, &hooks.Message{}), &real); err != nil {
		t.Fatal(err)
	}
	for field := range real {
		if _, ok := shown[field]; !ok {
			t.Errorf("the page does not show %s", field)
		}
	}
	if len(shown) != len(real) {
		t.Errorf("the page shows %d fields, there are %d", len(shown), len(real))
	}
}

// The lines that the page shows are ones that a worker gets, but for the fields
// it leaves out, and that rsctl takes.
func TestDocs_WorkerLines(t *testing.T) {
	t.Parallel()
	lines := hooktest.Snippets(t, "json")
	var shown, real map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &shown); err != nil {
		t.Fatal(err)
	}
	m := hooks.Message{Queue: "stock", RoutingKey: "stock", Attempt: 1, Body: []byte(`{"sku":"A-1"}`)}
	if err := json.Unmarshal(requestLine(7, m), &real); err != nil {
		t.Fatal(err)
	}
	for field, value := range shown {
		if fmt.Sprint(real[field]) != fmt.Sprint(value) {
			t.Errorf("%s: the page shows %v, a worker gets %v", field, value, real[field])
		}
	}
	if id, o, err := ReadAnswer([]byte(lines[1])); err != nil || id != 7 || o.Outcome.Verdict != hooks.RetryAfter {
		t.Errorf("%s is read as %d %+v, %v", lines[1], id, o, err)
	}
	if id, o, err := ReadAnswer([]byte(lines[2])); err != nil || id != 8 || len(o.Each) != 2 || o.Each[1].Verdict != hooks.Drop {
		t.Errorf("%s is read as %d %+v, %v", lines[2], id, o, err)
	}
}

// So are the batches that it shows.
func TestDocs_Batches(t *testing.T) {
	t.Parallel()
	text := hooktest.Snippets(t, "json")
	var shown, real []map[string]any
	if err := json.Unmarshal([]byte(text[3]), &shown); err != nil {
		t.Fatal(err)
	}
	ms := []hooks.Message{
		{Queue: "rows", RoutingKey: "rows", Attempt: 1, Body: []byte(`{"sku":"A-1"}`)},
		{Queue: "rows", RoutingKey: "rows", Attempt: 2, Body: []byte{0xff, 0}},
	}
	if err := json.Unmarshal([]byte("["+string(AppendMessages(nil, ms, ','))+"]"), &real); err != nil || len(shown) != len(real) {
		t.Fatalf("%v; the page shows %d messages", err, len(shown))
	}
	for i := range shown {
		for field, value := range shown[i] {
			if fmt.Sprint(real[i][field]) != fmt.Sprint(value) {
				t.Errorf("%s of message %d: the page shows %v, an endpoint gets %v", field, i+1, value, real[i][field])
			}
		}
	}
	hooktest.WantOutcomes(t, BatchAnswer([]byte(text[4]), 2), []hooks.Outcome{
		{Verdict: hooks.Ack}, {Verdict: hooks.RetryAfter, Delay: 30 * time.Second, Reason: "the row is locked"},
	})
}

func TestDocs_ReasonsAreBounded(t *testing.T) {
	t.Parallel()
	hooktest.WantOnPage(t, fmt.Sprintf("Reasons are cut at %d KiB", MaxReason>>10))
}
