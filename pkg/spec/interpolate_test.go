package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"a variable", "${SECRET}", "hunter2"},
		{"a variable inside text", "a-${KIND}-b", "a-quorum-b"},
		{"two variables", "${KIND}${NUMBER}", "quorum42"},
		{"a variable that is set but empty", "<${EMPTY}>", "<>"},
		{"a default for a variable that is not set", "${NOPE:-x:y}", "x:y"},
		{"a default for a variable that is empty", "${EMPTY:-x}", "x"},
		{"an empty default", "<${NOPE:-}>", "<>"},
		{"a default that is not needed", "${NUMBER:-1}", "42"},
		{"a message that is not needed", "${NUMBER:?say}", "42"},
		{"an escape", "$${NUMBER}", "${NUMBER}"},
		{"an escape after a dollar", "$$${NUMBER}", "$${NUMBER}"},
		{"other dollars stand for themselves", "pa$USERword$1$$ $", "pa$USERword$1$$ $"},
		{"a dollar at the end", "^a+$", "^a+$"},
		{"a file without its line break", "${file:secret.txt}", "from-file"},
		{"a file by its absolute path, CRLF", "${file:/run/secrets/url}", "amqp://u:p%40ss@mq/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := testOptions("q").expand(tt.text)
			if err != nil || got != tt.want {
				t.Errorf("expand(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${NOPE}":             "NOPE is not set",
		"${NOPE:?ask ops}":    "NOPE is not set: ask ops",
		"${EMPTY:?ask ops}":   "EMPTY is not set: ask ops",
		"${NOPE:?}":           "NOPE is not set",
		"${NOPE":              "no closing }",
		"${}":                 "not a reference",
		"${A B}":              "not a reference",
		"${NOPE-x}":           "not a reference",
		"${NOPE:-${NUMBER}}":  "holds another",
		"${file:}":            "names no file",
		"${file:missing.txt}": `cannot read "missing.txt": no such file`,
	} {
		_, _, err := testOptions("q").expand(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expand(%q): %v; want an error with %q", text, err, want)
		}
	}
}

func TestOptionsWithoutEnvironmentOrFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"${HOME}": "not set", "${file:/etc/passwd}": "files are not available"} {
		if _, _, err := (Options{}).expand(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expand(%q): %v, want %q", text, err, want)
		}
	}
}

func TestAPlainReferenceTakesTheTypeOfItsKey(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `version: 1
declare_topology: ${FLAG}
queues:
  - name: ${NUMBER}
    type: ${KIND}
    max_attempts: ${WORKERS}
    dead_letter: ${KIND}.dead
    delay: levels
    backoff:
      initial: ${WAIT}
      factor: ${FACTOR:-1.5}
    batch: {size: 1, wait: "${ZERO:-0s}"}
    ordered_by: header:${KIND}
    consumer:
      priority: ${NUMBER}
    handler:
      exec: ["${NUMBER}"]
      timeout: ${WAIT}
`)
	q := s.Queue("42")
	if q == nil || !s.DeclareTopology {
		t.Fatalf("names and booleans: %+v", s)
	}
	got := fmt.Sprint(q.Type, q.MaxAttempts, q.DeadLetter, q.Backoff.Initial, q.Backoff.Factor, q.Batch.Wait,
		q.OrderedBy.Header, q.Consumer.Priority, q.Handler.Command, q.Handler.Timeout)
	want := fmt.Sprint(Quorum, 7, "quorum.dead", 90*time.Second, 1.5, time.Duration(0), "quorum", 42,
		[]Text{{"42", "${NUMBER}"}}, 90*time.Second)
	if got != want {
		t.Errorf("values:\n got %s\nwant %s", got, want)
	}
}

// Every key gets a secret where it does not belong. None may come back in a
// problem, and a Text must print without it.
func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	keys := `name type durable exclusive auto_delete external bindings dead_letter_exchange dead_letter_routing_key
		arguments max_attempts dead_letter retry_original retry_publisher delay backoff prefetch concurrency ordered_by
		batch rate breaker consumer handler`
	nested := `handler: {exec: S} | handler: {worker: [S, 1]} | handler: {http: S} | handler: {exec: [x], timeout: S} |
		handler: {exec: [x], exit_codes: {3: S}} | handler: {exec: [x], env: {A: S, B: "x\0"}} | handler: {http: "http://u:S@h:S/"} |
		handler: {http: "http://h/", secret: [S, 5]} | handler: {http: "http://h/", headers: {A: "S\n"}} | delay: {strategy: S} |
		delay: {strategy: dlx_ttl, tiers: [S]} | max_attempts: 2, dead_letter: S, dead_letter_exchange: S |
		delay: {strategy: dlx_ttl, waiting_queue: S}, max_attempts: 2, dead_letter: S |
		delay: {strategy: plugin_dme, exchange: S}, max_attempts: 1 | batch: {size: S} | consumer: {tag: "S\n"} | bindings: [{exchange: "amq.S"}] |
		bindings: [{exchange: e, routing_key: "S\n"}] | dead_letter: "amq.S" | delay: {strategy: native, min: S, max: 1s}`
	var lines []string
	for _, k := range strings.Fields(keys) {
		lines = append(lines, k+": S")
	}
	for _, l := range strings.Split(nested, "|") {
		l = strings.TrimSpace(l)
		l = strings.NewReplacer("}, max", "}\n    max", ", dead", "\n    dead").Replace(l)
		lines = append(lines, l)
	}
	for _, line := range lines {
		for _, ref := range []string{`"${SECRET}"`, `"${file:secret.txt}"`} {
			inner := strings.Trim(ref, `"`)
			l := strings.NewReplacer(`"amq.S"`, `"amq.`+inner+`"`, `"S\n"`, `"`+inner+`\n"`, "u:S@h:S", "u:"+inner+"@h:"+inner, "S", ref).Replace(line)
			text := "version: 1\nbroker: {url: " + ref + "}\nqueues:\n  - name: q\n    type: classic\n    " + l + "\n"
			if strings.HasPrefix(l, "name") {
				text = "version: 1\nbroker: {url: " + ref + "}\nqueues:\n  - type: classic\n    " + l + "\n"
			}
			_, problems := Parse([]byte(text), testOptions("q.yaml"))
			if len(problems) == 0 {
				t.Errorf("no problem for %s", l)
			}
			if out := problems.String(); strings.Contains(out, "hunter2") || strings.Contains(out, "from-file") {
				t.Errorf("the secret is shown for %s:\n%s", l, out)
			}
		}
	}
}

func TestTextShowsTheSourceWithPasswordsMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"amqp://guest:guest@localhost/":          "amqp://guest:***@localhost/",
		"amqp://u:p@ss/w:rd@h/":                  "amqp://u:***@h/",
		"amqp://u:${PASS}@h/":                    "amqp://u:${PASS}@h/",
		"amqp://u:${file:/run/s}@h/":             "amqp://u:${file:/run/s}@h/",
		"amqp://u:${PASS:-hidden}@h/":            "amqp://u:***@h/",
		"amqp://u:a${PASS}b@h/":                  "amqp://u:***@h/",
		"amqp://u:${A}secret${B}@h/":             "amqp://u:***@h/",
		"${AMQP_URL:-amqp://guest:guest@local/}": "${AMQP_URL:-amqp://guest:***@local/}",
		"amqp://localhost:5672/":                 "amqp://localhost:5672/",
		"amqp://u@h/":                            "amqp://u@h/",
		"amqp://:only@h/":                        "amqp://:***@h/",
		"not a url: a@b":                         "not a url: a@b",
	} {
		if got := maskURL(text); got != want {
			t.Errorf("maskURL(%q) = %q, want %q", text, got, want)
		}
	}
	s := mustParse(t, "version: 1\nbroker: {url: \"amqp://u:${SECRET}@h/\"}\nqueues: [{name: q, type: classic}]\n")
	if got := fmt.Sprint(s.Broker.URL); got != "amqp://u:${SECRET}@h/" || s.Broker.URL.Value != "amqp://u:hunter2@h/" {
		t.Errorf("URL prints as %s and is %s", got, s.Broker.URL.Value)
	}
}
