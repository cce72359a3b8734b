package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

func TestBatchesExampleInsertsRowsManyAtATime(t *testing.T) {
	t.Parallel()
	b := harness.NewBroker(t)
	journal := filepath.Join(t.TempDir(), "journal")
	env := []string{"JOURNAL=" + journal}
	b.MustRsctl(env, "-f", example(t, "batches.yaml"), "apply")
	const good = 60
	rows := []amqp.Publishing{
		{MessageId: "locked", Body: []byte(`{"sku":"LOCKED"}`)},
		{MessageId: "bad", Body: []byte(`{"sku":""}`)},
		{MessageId: "hopeless", Body: []byte("\xff\xfe")},
	}
	for i := range good {
		rows = append(rows, amqp.Publishing{MessageId: fmt.Sprint("good ", i), Body: []byte(`{"sku":"A-1"}`)})
	}
	b.Publish("", "rows", rows...)
	r := b.MustRsctl(env, "-f", example(t, "batches.yaml"), "run", "--drain", "--queue", "rows")

	dead := slices.Sorted(slices.Values(harness.IDs(b.TakeN("rows.dead", 2))))
	if want := []string{"bad", "hopeless"}; !slices.Equal(dead, want) {
		t.Errorf("rows.dead holds %q, want %q", dead, want)
	}
	if n := b.Ready("rows"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	for _, want := range []string{"the row has no sku", "the row is locked", "not a row"} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("the log does not say %q:\n%s", want, r.Stderr)
		}
	}
	attempts, largest := 0, 0
	for _, line := range linesOf(t, journal) {
		var size int
		if _, err := fmt.Sscanf(line, "rows %d", &size); err != nil {
			t.Fatalf("the handler noted %q", line)
		}
		attempts, largest = attempts+size, max(largest, size)
	}
	if want := good + 1 + 2 + 3; attempts != want || largest < 2 || largest > 32 {
		t.Errorf("%d messages in all batches, want %d; the largest had %d", attempts, want, largest)
	}
}

// An auditor is an endpoint that takes batches of numbered events.
type auditor struct {
	mu       sync.Mutex
	busy     map[string]bool
	last     map[string]int
	seen     map[string]int
	problems []string
}

type auditEvent struct {
	Body      string
	Body64    []byte `json:"body_base64"`
	MessageID string `json:"message_id"`
	Attempt   int
	Headers   map[string]any
}

func (a *auditor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var events []auditEvent
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil || fmt.Sprint(len(events)) != r.Header.Get("RSCTL-Batch-Size") {
		a.problem("%d events of %s: %v", len(events), r.Header.Get("RSCTL-Batch-Size"), err)
	}
	customers := a.enter(events)
	defer a.leave(customers)
	var answer struct {
		Outcomes []map[string]string `json:"outcomes"`
	}
	for _, e := range events {
		outcome := map[string]string{"outcome": "ack"}
		if e.Body == "hopeless" || e.Body == "flaky" && e.Attempt == 1 {
			outcome = map[string]string{"outcome": "retry", "reason": "not now"}
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	json.NewEncoder(w).Encode(answer)
}

func (a *auditor) problem(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// enter notes what breaks the order, and returns the customers of the request.
func (a *auditor) enter(events []auditEvent) (customers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range events {
		a.seen[e.MessageID]++
		customer, _ := e.Headers["customer"].(string)
		if !slices.Contains(customers, customer) {
			customers = append(customers, customer)
			if a.busy[customer] {
				a.problems = append(a.problems, "two requests at a time for "+customer)
			}
			a.busy[customer] = true
		}
		var n int
		if _, err := fmt.Sscanf(e.MessageID, customer+"-%d", &n); err != nil || e.Attempt == 1 && n < a.last[customer] {
			a.problems = append(a.problems, fmt.Sprintf("%s comes after %d: %v", e.MessageID, a.last[customer], err))
		}
		a.last[customer] = max(n, a.last[customer])
		if n == 9 && string(e.Body64) != "\xff\x00" {
			a.problems = append(a.problems, fmt.Sprintf("%s has the body %q", e.MessageID, e.Body64))
		}
	}
	return customers
}

func (a *auditor) leave(customers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range customers {
		a.busy[c] = false
	}
}

func TestBatchesExampleAuditsEachCustomerInOrder(t *testing.T) {
	t.Parallel()
	a := &auditor{busy: map[string]bool{}, last: map[string]int{}, seen: map[string]int{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	b := harness.NewBroker(t)
	env := []string{"AUDIT_URL=" + server.URL + "/audit"}
	b.MustRsctl(env, "-f", example(t, "batches.yaml"), "apply")
	bodies := map[int]string{3: "flaky", 5: "hopeless", 9: "\xff\x00"}
	var events []amqp.Publishing
	const perCustomer, customers = 60, 5
	for n := range perCustomer {
		for c := range customers {
			name := fmt.Sprintf("c%d", c)
			events = append(events, amqp.Publishing{
				MessageId: fmt.Sprintf("%s-%d", name, n), Body: []byte(bodies[n]), Headers: amqp.Table{"customer": name},
			})
		}
	}
	b.Publish("", "audit", events...)
	b.MustRsctl(env, "-f", example(t, "batches.yaml"), "run", "--drain", "--queue", "audit")

	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.problems[:min(len(a.problems), 5)] {
		t.Error(p)
	}
	for _, e := range events {
		want := map[string]int{"flaky": 2, "hopeless": 3}[string(e.Body)]
		if got := a.seen[e.MessageId]; got != max(want, 1) {
			t.Errorf("%s was seen %d times, want %d", e.MessageId, got, max(want, 1))
		}
	}
	dead := harness.IDs(b.TakeN("audit.dead", customers))
	if slices.ContainsFunc(dead, func(id string) bool { return !strings.HasSuffix(id, "-5") }) {
		t.Errorf("audit.dead holds %q, want the fifth of each customer", dead)
	}
}
