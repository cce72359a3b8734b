package ledger

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *Ledger {
	t.Helper()
	l, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// runs writes "OUTCOME OUTCOME…" as runs of a message; "?" is a run without end.
func runs(t *testing.T, l *Ledger, id, outcomes string) {
	t.Helper()
	for i, o := range strings.Fields(outcomes) {
		lines := fmt.Sprintf("start %s %d\n", id, i+1)
		if o != "?" {
			lines += fmt.Sprintf("end %s %d %s\n", id, i+1, o)
		}
		if err := l.write(lines); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryMessageIsCountedInOnePlace(t *testing.T) {
	t.Parallel()
	l := open(t)
	for id, outcomes := range map[string]string{
		"q/acked": "ack", "q/twice": "ack ack", "q/over": "retry retry retry ack", "q/acked and dead": "ack retry",
		"q/queued": "retry", "q/waiting": "after", "q/dead": "retry retry retry", "q/deleted": "", "q/lost": "retry ?", "q/killed": "?",
	} {
		id = strings.ReplaceAll(id, " ", "-")
		l.enter("q", id, Plan{Outcome: Retry, Times: Hopeless})
		runs(t, l, id, outcomes)
	}
	l.enter("q", "q/healthy", Plan{Outcome: Ack})
	runs(t, l, "q/never-confirmed", "ack ack")
	a, err := l.Account(Found{
		Work: []string{"q/queued", "q/queued"}, Waiting: []string{"q/waiting"},
		Dead: []string{"q/dead", "q/acked-and-dead", "q/healthy"},
	}, Rules{Cap: 3, Gone: func(id string, _ time.Time, last string) bool { return id == "q/deleted" && last == "" }})
	if err != nil {
		t.Fatal(err)
	}
	var lost []string
	for _, m := range a.Lost {
		lost = append(lost, m.String())
	}
	wantLost := []string{`q/killed (1 runs, the last answered "")`, `q/lost (2 runs, the last answered "retry")`}
	if !slices.Equal(lost, wantLost) {
		t.Errorf("lost %q, want %q", lost, wantLost)
	}
	got := fmt.Sprintf("in %d acked %d work %d waiting %d dead %d deleted %d duplicates %d runs %d over %d highest %d healthy %v",
		a.In, a.Acked, a.Work, a.Waiting, a.Dead, a.Deleted, a.Duplicates, a.Runs, a.OverCap, a.HighestAttempt, a.HealthyDead)
	want := "in 11 acked 4 work 1 waiting 1 dead 2 deleted 1 duplicates 3 runs 17 over 1 highest 4 healthy [q/healthy]"
	if got != want {
		t.Errorf("account:\n%s, want\n%s", got, want)
	}
	if n, err := l.Runs(); n != 19 || err != nil { // those of the message in doubt as well
		t.Errorf("Runs() = %d, %v, want 19", n, err)
	}
	spent, err := l.Spent(3)
	if err != nil || len(spent) != 1 || !spent["q/dead"] {
		t.Errorf("Spent(3) = %v, %v; want the dead one", spent, err)
	}
}

func TestALineThatAKilledHookLeftHalfWrittenIsNoRun(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.write("start q/1 1\nsta"); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Runs(); n != 1 || err != nil {
		t.Errorf("Runs() = %d, %v", n, err)
	}
	if _, err := l.Account(Found{}, Rules{}); err != nil {
		t.Errorf("Account() fails: %v", err)
	}
}

func TestThePlanIsTheBody(t *testing.T) {
	t.Parallel()
	for i := range 40 {
		for _, delays := range []Delays{Plain, Delayed} {
			p := Mix(i, delays)
			got, err := ParsePlan(p.String())
			if err != nil || got != p {
				t.Errorf("ParsePlan(%q) = %+v, %v", p, got, err)
			}
			if delays == Plain && p.Outcome == After {
				t.Errorf("message %d of a plain load asks for a delay", i)
			}
		}
	}
	if p, err := ParsePlan("retry"); err == nil {
		t.Errorf("half a plan is read as %+v", p)
	}
}

func TestTheHookAnswersByPlanAndWritesItDown(t *testing.T) {
	t.Parallel()
	l := open(t)
	hook := &Hook{Ledger: l}
	call := func(id, attempt, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("RSCTL-Message-Id", id)
		r.Header.Set("RSCTL-Attempt", attempt)
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		return w
	}
	if w := call("q/1", "1", "retry 1 0s"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a retry is answered by %d", w.Code)
	}
	if w := call("q/1", "2", "retry 1 0s"); w.Code != http.StatusOK || w.Header().Get("RSCTL-Outcome") != "" {
		t.Errorf("an ack is answered by %d, outcome %q", w.Code, w.Header().Get("RSCTL-Outcome"))
	}
	if w := call("q/2", "1", "after 1 300ms"); w.Header().Get("RSCTL-Outcome") != "retry_after 300ms" {
		t.Errorf("a delayed retry is answered by %q", w.Header().Get("RSCTL-Outcome"))
	}
	if w := call("q/3", "1", "nonsense"); w.Code != http.StatusInternalServerError {
		t.Errorf("a body that is no plan is answered by %d", w.Code)
	}
	l.enter("q", "q/1", Plan{})
	l.enter("q", "q/2", Plan{})
	a, err := l.Account(Found{Waiting: []string{"q/2"}}, Rules{Cap: 3})
	if err != nil || a.Acked != 1 || a.Waiting != 1 || a.Runs != 3 {
		t.Errorf("account %+v, %v", a, err)
	}
}

func TestTheTableNamesWhatIsLost(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	rows := []Row{{Fault: "kill", Strikes: 3, Account: Account{In: 10, Acked: 9, Lost: []Missing{{"q/7", 2, Retry}}}}}
	if err := Table(&out, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"over the cap  lost", "kill        3  10", `kill: lost [q/7 (2 runs, the last answered "retry")]`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
