package kinds

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

const page = "../../../docs/hooks.md"

// snippets returns the fenced blocks of one language.
func snippets(t *testing.T, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readFile(t, page), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("%s has no %s snippet", page, language)
	}
	return out
}

func TestDocsSpecs(t *testing.T) {
	t.Parallel()
	seen := map[spec.HandlerKind]bool{}
	for _, text := range snippets(t, "yaml") {
		s, problems := spec.Parse([]byte(text), spec.Options{File: "hooks.md", Dir: t.TempDir()})
		if problems.HasErrors() {
			t.Errorf("%s\n%s", text, problems)
			continue
		}
		seen[s.Queues[0].Handler.Kind] = true
	}
	for kind := range registry {
		if !seen[kind] {
			t.Errorf("no snippet shows an %s handler", kind)
		}
	}
}

func TestDocsMetadata(t *testing.T) {
	t.Parallel()
	var shown, real map[string]any
	all := snippets(t, "json")
	if err := json.Unmarshal([]byte(all[len(all)-1]), &shown); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(appendMetadata(nil, &hooks.Message{}), &real); err != nil {
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
func TestDocsWorkerLines(t *testing.T) {
	t.Parallel()
	lines := snippets(t, "json")
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
	if id, o, err := readAnswer([]byte(lines[1])); err != nil || id != 7 || o.outcome.Verdict != hooks.RetryAfter {
		t.Errorf("%s is read as %d %+v, %v", lines[1], id, o, err)
	}
	if id, o, err := readAnswer([]byte(lines[2])); err != nil || id != 8 || len(o.each) != 2 || o.each[1].Verdict != hooks.Drop {
		t.Errorf("%s is read as %d %+v, %v", lines[2], id, o, err)
	}
}

// So are the batches that it shows.
func TestDocsBatches(t *testing.T) {
	t.Parallel()
	text := snippets(t, "json")
	var shown, real []map[string]any
	if err := json.Unmarshal([]byte(text[3]), &shown); err != nil {
		t.Fatal(err)
	}
	ms := []hooks.Message{
		{Queue: "rows", RoutingKey: "rows", Attempt: 1, Body: []byte(`{"sku":"A-1"}`)},
		{Queue: "rows", RoutingKey: "rows", Attempt: 2, Body: []byte{0xff, 0}},
	}
	if err := json.Unmarshal([]byte("["+string(appendMessages(nil, ms, ','))+"]"), &real); err != nil || len(shown) != len(real) {
		t.Fatalf("%v; the page shows %d messages", err, len(shown))
	}
	for i := range shown {
		for field, value := range shown[i] {
			if fmt.Sprint(real[i][field]) != fmt.Sprint(value) {
				t.Errorf("%s of message %d: the page shows %v, an endpoint gets %v", field, i+1, value, real[i][field])
			}
		}
	}
	wantOutcomes(t, batchAnswer([]byte(text[4]), 2), []hooks.Outcome{
		{Verdict: hooks.Ack}, {Verdict: hooks.RetryAfter, Delay: 30 * time.Second, Reason: "the row is locked"},
	})
}

// The page names every variable and every header, and the limits are the
// code's.
func TestDocsNames(t *testing.T) {
	t.Parallel()
	text := readFile(t, page)
	want := append([]string{defaultPath, headerPrefix, omittedSuffix, drainFor.String(), idleFor.String()[:1] + " s"}, fixedNames...)
	want = append(want, fmt.Sprint("at most ", maxAnswerLine>>20, " MiB"), fmt.Sprint("begins at ", restMin.Milliseconds(), " ms"),
		fmt.Sprint("up to ", restMax.Seconds(), " s"))
	m := hooks.Message{
		MessageID: "1", CorrelationID: "1", ContentType: "1", ContentEncoding: "1", Type: "1", AppID: "1", ReplyTo: "1",
		Timestamp: 1, Priority: 1,
	}
	e := newHook(t, httpHandler("http://localhost/"), Options{}).(*endpoint)
	for _, f := range e.fields(&m) {
		want = append(want, f.name)
	}
	for _, f := range e.batchFields([]hooks.Message{m}) {
		want = append(want, f.name, f.value)
	}
	for what, bytes := range map[string]int{
		"A value over %s is left out":          maxEnvValue,
		"all headers together over %s.":        maxEnvHeaders,
		"A value over %s as sent":              maxHTTPValue,
		"of the message together over %s;":     maxHTTPHeaders,
		"A line is logged up to %s":            maxLine,
		"a stream up to %s":                    maxStream,
		"More than one line, more than %s":     maxAnswer,
		"Descriptor 4 takes %s for each":       maxAnswer,
		"Reasons are cut at %s":                maxReason,
		"At most %s of a response's body":      maxBody,
		"a process may have %s logged":         maxStream,
		"body and %s of its headers are read;": maxResponseHeaders,
	} {
		want = append(want, fmt.Sprintf(what, fmt.Sprint(bytes>>10, " KiB")))
	}
	for _, w := range want {
		if !strings.Contains(strings.ReplaceAll(text, "200 ms", "200ms"), w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}
