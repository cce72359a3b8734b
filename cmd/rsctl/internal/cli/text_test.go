package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"validate", "explain", "apply", "check", "run"}
	tests := []struct{ name, got, want string }{
		{"a swap of neighbours is a slip", "vaildate", "validate"},
		{"a missing letter is a slip", "aply", "apply"},
		{"case does not matter", "RUN", "run"},
		{"another word is not a slip", "frobnicate", ""},
		{"nothing is near to nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := nearest(tt.got, words); got != tt.want {
				t.Errorf("nearest(%q) = %q, want %q", tt.got, got, tt.want)
			}
		})
	}
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"a password is replaced", "amqp://u:p@host:5672/v", "amqp://u:***@host:5672/v"},
		{"a user alone stays", "amqp://u@host/", "amqp://u@host/"},
		{"an @ in the user stays escaped", "amqp://a%40b:p@host/", "amqp://a%40b:***@host/"},
		{"the vhost / stays escaped", "amqp://u:p@host/%2F", "amqp://u:***@host/%2F"},
		{"a query may hold secrets", "amqps://host/?password=p", "amqps://host/"},
		{"what cannot be read is hidden whole", "amqp://u:p@ho st:x/", "(unreadable URL)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := maskURL(tt.raw); got != tt.want {
				t.Errorf("maskURL(%q) = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	tab := table{head: []string{"OBJECT", "STATE", "DETAIL"}}
	tab.cells(cell{`queue "größe"`, plain}, cell{"ok", green}, cell{})
	tab.row(`queue "a"`, "missing", "line\nbreak and \x1b[2J")
	want := strings.Join([]string{
		`  OBJECT         STATE    DETAIL`,
		`  queue "größe"  ok`,
		`  queue "a"      missing  line break and \x1b[2J`,
		"",
	}, "\n")

	var out bytes.Buffer
	tab.print(console{w: &out}, "  ")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	tab.print(console{w: &out, colours: true}, "  ")
	if !strings.Contains(out.String(), "\x1b[32mok\x1b[0m\n") {
		t.Errorf("no green in %q", out.String())
	}
}

func TestTableOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	tab := table{head: []string{"A", "B"}}
	tab.row("one", "two three four five six seven eight")
	var out bytes.Buffer
	tab.print(console{w: &out, columns: 32}, "  ")
	want := "  A    B\n  one  two three four five six\n       seven eight\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	tab.print(console{w: &out, columns: 20}, "  ")
	if want := "  A    B\n  one  two three four five six seven eight\n"; out.String() != want {
		t.Errorf("a column too narrow to read is left alone, got\n%s", out.String())
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	got := wrap("  type  ", "one two three four", 17)
	if want := "  type  one two\n        three\n        four"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := wrap("x ", "averylongwordthatfitsnowhere", 10); got != "x averylongwordthatfitsnowhere" {
		t.Errorf("a long word is kept whole, got %q", got)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		30 * time.Second: "30s", 5 * time.Minute: "5m", 2 * time.Hour: "2h", 90 * time.Minute: "1h30m",
		0: "0s", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		36 * time.Hour: "36h", 7 * 24 * time.Hour: "7d", 50*time.Hour + time.Second: "2d2h0m1s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestParseHeader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, key string
		want          any
	}{
		{"text is taken as it is", "a=1", "a", "1"},
		{"text may hold more equal signs", "a=b=c", "a", "b=c"},
		{"a whole number is int64", "a:=5000000000", "a", int64(5_000_000_000)},
		{"a fraction is float64", "a:=1.5", "a", 1.5},
		{"null, true and lists work", "a:=[null,true,2]", "a", []any{nil, true, int64(2)}},
		{"an object is a table", `a:={"b":1}`, "a", amqp.Table{"b": int64(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, got, err := parseHeader(tt.in)
			if err != nil || key != tt.key || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("parseHeader(%q) = %q, %#v, %v", tt.in, key, got, err)
			}
			if err := (amqp.Table{key: got}).Validate(); err != nil {
				t.Errorf("AMQP cannot carry it: %v", err)
			}
		})
	}
	for _, bad := range []string{"a", "=1", "a:=", "a:=1 2", "a:=x", ":=1", strings.Repeat("n", 256) + "=1"} {
		if _, _, err := parseHeader(bad); exitCode(err) != exitUsage {
			t.Errorf("parseHeader(%q) = %v, want wrong usage", bad, err)
		}
	}
}

func TestSetProperty(t *testing.T) {
	t.Parallel()
	var m amqp.Publishing
	for name, value := range map[string]string{
		"content_type": "text/plain", "priority": "7", "expiration": "60000", "timestamp": "2026-01-02T03:04:05Z",
		"delivery_mode": "transient", "correlation_id": "c", "reply_to": "r", "type": "t", "app_id": "a", "user_id": "u",
		"content_encoding": "gzip",
	} {
		if err := setProperty(&m, name, value); err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	want := amqp.Publishing{
		ContentType: "text/plain", ContentEncoding: "gzip", Priority: 7, Expiration: "60000",
		Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), DeliveryMode: amqp.Transient,
		CorrelationId: "c", ReplyTo: "r", Type: "t", AppId: "a", UserId: "u",
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v\nwant %+v", m, want)
	}
	for _, bad := range [][2]string{
		{"expiration", "-1"}, {"expiration", "1.5"}, {"expiration", "315360000001"}, {"priority", "x"},
		{"timestamp", "yesterday"}, {"delivery_mode", "3"}, {"type", strings.Repeat("t", 256)}, {"message_id", "x"},
	} {
		if err := setProperty(&m, bad[0], bad[1]); exitCode(err) != exitUsage {
			t.Errorf("%s=%s: %v, want wrong usage", bad[0], bad[1], err)
		}
	}
}

// sample has a finding of every level.
var sample = report{
	Command: "check", Broker: "amqp://localhost/", Version: "4.3.6",
	Findings: []finding{
		{Kind: "queue", Name: "orders", State: "ok", File: "q.yaml", Line: 3, Column: 5},
		{Kind: "queue", Name: "or,ders:100%", State: "missing", Detail: "no such queue", Hint: `run "rsctl apply"`, File: "q.yaml", Line: 4, Column: 5},
		{Kind: "binding", Name: "e -> orders", State: "not verified", Detail: "no management API", File: "q.yaml", Line: 5, Column: 7},
		{Kind: "queue", Name: "dead", State: "warning", Detail: "has a limit", File: "q.yaml", Line: 6, Column: 7},
	},
}

func render(t *testing.T, format string, r report) string {
	t.Helper()
	a := testApp()
	a.output.value = format
	if err := a.writeReport(r); err != nil {
		t.Fatal(err)
	}
	return a.sys.Out.(*bytes.Buffer).String()
}

func TestReportAsText(t *testing.T) {
	t.Parallel()
	want := `OBJECT                 STATE         DETAIL
queue "orders"         ok
queue "or,ders:100%"   missing       no such queue
binding "e -> orders"  not verified  no management API
queue "dead"           warning       has a limit

  hint: queue "or,ders:100%": run "rsctl apply"

check on RabbitMQ 4.3.6 at amqp://localhost/: 1 missing, 1 not verified, 1 ok, 1 warning
`
	if got := render(t, "text", sample); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReportForGitHub(t *testing.T) {
	t.Parallel()
	want := `::error file=q.yaml,line=4,col=5,title=queue-missing::queue "or,ders:100%25": missing: no such queue%0Ahint: run "rsctl apply"
::notice file=q.yaml,line=5,col=7,title=binding-not-verified::binding "e -> orders": not verified: no management API
::warning file=q.yaml,line=6,col=7,title=queue-warning::queue "dead": warning: has a limit
check on RabbitMQ 4.3.6 at amqp://localhost/: 1 missing, 1 not verified, 1 ok, 1 warning
`
	if got := render(t, "github", sample); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReportAsJUnit(t *testing.T) {
	t.Parallel()
	got := render(t, "junit", sample)
	for _, want := range []string{
		`<testsuite name="rsctl check" tests="4" failures="1" errors="0" skipped="1">`,
		`<testcase classname="rsctl.check.queue" name="queue &#34;orders&#34;" file="q.yaml" line="3"></testcase>`,
		`type="queue-missing">q.yaml:4:5: run &#34;rsctl apply&#34;</failure>`,
		`<system-out>warning: queue &#34;dead&#34;: warning: has a limit</system-out>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
}

func TestReportAsSARIF(t *testing.T) {
	t.Parallel()
	var log sarifLog
	if err := json.Unmarshal([]byte(render(t, "sarif", sample)), &log); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range log.Runs[0].Results {
		got = append(got, r.Level+" "+r.RuleID)
	}
	want := []string{"error queue-missing", "note binding-not-verified", "warning queue-warning"}
	if !reflect.DeepEqual(got, want) || len(log.Runs[0].Tool.Driver.Rules) != 3 {
		t.Errorf("results %q, want %q; rules %v", got, want, log.Runs[0].Tool.Driver.Rules)
	}
	if at := log.Runs[0].Results[0].Locations[0].Physical; at.Artifact.URI != "q.yaml" || *at.Region != (sarifRegion{4, 5}) {
		t.Errorf("location %+v", at)
	}
}

// failingWriter is a full disk.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }

func TestAFailedWriteIsNotSuccess(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	code := Main([]string{"version"}, IO{In: strings.NewReader(""), Out: failingWriter{}, Err: &errs})
	if code != exitFailure || !strings.Contains(errs.String(), "writing the result") {
		t.Errorf("code %d, %q; want %d", code, errs.String(), exitFailure)
	}
}
