package message

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		id   uint64
		want hooks.Outcome
	}{
		{`{"id":"7","outcome":"ack"}`, 7, hooks.Outcome{Verdict: hooks.Ack}},
		{` { "id" : "7" , "outcome" : "drop", "reason":"no such customer" } `, 7, hooks.Outcome{Verdict: hooks.Drop, Reason: "no such customer"}},
		{`{"outcome":"retry","id":"18"}`, 18, hooks.Outcome{Verdict: hooks.Retry}},
		{`{"id":"7","outcome":"retry_after","delay":"1m30s","reason":""}`, 7, hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 90 * time.Second}},
		{`{"id":"7","outcome":"retry_after","delay":"-5s"}`, 7, hooks.Outcome{Verdict: hooks.RetryAfter, Delay: -5 * time.Second}},
		{`{"id":"7","outcome":"ack","delay":"","reason":null,"took":{"ms":[3]}}`, 7, hooks.Outcome{Verdict: hooks.Ack}},
		{`{"id":"7","outcome":"\u0061ck","reason":"über"}`, 7, hooks.Outcome{Verdict: hooks.Ack, Reason: "über"}},
		{`{"id":"7","outcome":"drop","reason":"a\nb\u001b"}`, 7, hooks.Outcome{Verdict: hooks.Drop, Reason: `a\x0ab\x1b`}},
		{`{"id":"7","outcome":"ack","reply":"pong"}`, 7, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("pong")}},
		{`{"id":"7","outcome":"ack","reply":""}`, 7, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte{}}},
		{`{"id":"7","outcome":"ack","reply_base64":"AP8="}`, 7, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte{0, 255}}},

		{`{"id":"7","outcome":"ack","outcome":"drop"}`, 7, hooks.Outcome{Reason: "malformed answer: outcome is there twice"}},
		{`{"id":"7","outcome":"ack","outcome":"ack"}`, 7, hooks.Outcome{Reason: "malformed answer: outcome is there twice"}},
		{`{"id":"7","outcome":"retry","\u006futcome":"ack"}`, 7, hooks.Outcome{Reason: "malformed answer: outcome is there twice"}},
		{`{"id":"7","outcome":null,"outcome":"ack"}`, 7, hooks.Outcome{Reason: "malformed answer: outcome is there twice"}},
		{`{"id":"7","outcome":"retry_after","delay":"1s","delay":"1h"}`, 7, hooks.Outcome{Reason: "malformed answer: delay is there twice"}},
		{`{"id":"7","outcome":"ack","reply":"a","reply_base64":"Yg=="}`, 7, hooks.Outcome{Reason: "malformed answer: both reply and reply_base64"}},
		{`{"id":"7","outcome":"ack","took":1,"took":2}`, 7, hooks.Outcome{Verdict: hooks.Ack}},
		{`{"id":"7"}`, 7, hooks.Outcome{Reason: "malformed answer: no outcome"}},
		{`{"id":"7","outcome":null}`, 7, hooks.Outcome{Reason: "malformed answer: no outcome"}},
		{`{"id":"7","Outcome":"ack"}`, 7, hooks.Outcome{Reason: "malformed answer: no outcome"}},
		{`{"id":"7","outcome":"ok"}`, 7, hooks.Outcome{Reason: `malformed answer: outcome "ok" is none of ack, drop, retry, retry_after`}},
		{`{"id":"7","outcome":true}`, 7, hooks.Outcome{Reason: `malformed answer: outcome "true" is none of ack, drop, retry, retry_after`}},
		{`{"id":"7","outcome":["ack"]}`, 7, hooks.Outcome{Reason: `malformed answer: outcome "[\"ack\"]" is none of ack, drop, retry, retry_after`}},
		{`{"id":"7","outcome":"retry_after"}`, 7, hooks.Outcome{Reason: `malformed answer: retry_after needs a delay, such as "delay":"30s"`}},
		{`{"id":"7","outcome":"ack","reply":{"a":1}}`, 7, hooks.Outcome{Reason: "malformed answer: reply is not text"}},
		{`{"id":"7","outcome":"ack","reply_base64":"%"}`, 7, hooks.Outcome{Reason: "malformed answer: reply_base64 is not base64"}},
	} {
		id, r, err := ReadAnswer([]byte(tt.line))
		got := r.Outcome
		if err != nil || id != tt.id || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", tt.want) {
			t.Errorf("%s\ngot  %d %#v, %v\nwant %d %#v", tt.line, id, got, err, tt.id, tt.want)
		}
	}
	for _, delay := range []string{`30`, `"30"`, `"soon"`, `true`} {
		line := `{"id":"7","outcome":"retry_after","delay":` + delay + `}`
		if _, got, err := ReadAnswer([]byte(line)); err != nil || got.Outcome.Verdict != hooks.Failed || !strings.Contains(got.Outcome.Reason, "is not a duration") {
			t.Errorf("%s: got %+v, %v, want Failed", line, got, err)
		}
	}
}

// A line from which it is not clear what was answered condemns the process.
func TestReadAnswerRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`hello`:                                "is no JSON object",
		`{"id":"7","outcome":"ack"`:            "is no JSON object",
		`{"id":"7","outcome":"ack"}}`:          "is no JSON object",
		`{"id":"7","outcome":"ack"} again`:     "is no JSON object",
		`["7","ack"]`:                          "is no JSON object",
		`"ack"`:                                "is no JSON object",
		`null`:                                 "is no JSON object",
		`{}`:                                   "has no id",
		`{"outcome":"ack"}`:                    "has no id",
		`{"id":null,"outcome":"ack"}`:          "has no id",
		`{"id":7,"outcome":"ack"}`:             `has the id 7, which is no text: write it as it was sent, in quotes`,
		`{"id":"7","id":"8","outcome":"ack"}`:  "has two ids",
		`{"id":"7","id":"7","outcome":"ack"}`:  "has two ids",
		`{"id":"7","outcome":"ack"}{"id":"8"}`: "is no JSON object",
		`{"id":"07","outcome":"ack"}`:          `has the id "07"`,
		`{"id":"-7","outcome":"ack"}`:          `has the id "-7"`,
		`{"id":"seven","outcome":"ack"}`:       `has the id "seven"`,
		`{"id":"77777777777777777777777777"}`:  `has the id "7777`,
	} {
		if id, o, err := ReadAnswer([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %d %+v, %v, want an error with %q", line, id, o, err, want)
		}
	}
}

// The quick reader and the thorough one never differ.
func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"id":"7","outcome":"ack"}`)
	f.Add(`{"id":"7","outcome":"retry_after","delay":"30s","reason":"no\n"}`)
	f.Add(`{ "id":"1", "reply":"x" , "outcome":"drop"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var quick object
		if !quick.scan([]byte(line)) {
			return
		}
		thorough, err := decodeAnswer([]byte(line))
		if err != nil {
			t.Fatalf("%q: only the quick reader takes it: %v", line, err)
		}
		if fmt.Sprintf("%v", quick) != fmt.Sprintf("%v", *thorough) {
			t.Errorf("%q:\nquick    %v\nthorough %v", line, quick, *thorough)
		}
	})
}

func FuzzAppendRequest(f *testing.F) {
	f.Add("a\x00\u2028\"\\", "h")
	f.Fuzz(func(t *testing.T, body, header string) {
		m := hooks.Message{Body: []byte(body), MessageID: header, Headers: map[string]any{header: body}}
		line := requestLine(12, m)
		var got struct {
			ID     string
			Body   *string
			Base64 []byte `json:"body_base64"`
		}
		if err := json.Unmarshal(line, &got); err != nil || got.ID != "12" {
			t.Fatalf("%q: id %q, %v", line, got.ID, err)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Errorf("%q is not one line", line)
		}
		if text := got.Body; text != nil && *text != body || text == nil && string(got.Base64) != body {
			t.Errorf("%q carries another body than %q", line, body)
		}
	})
}

func BenchmarkReadAnswer(b *testing.B) {
	line := []byte(`{"id":"123456","outcome":"ack"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, o, err := ReadAnswer(line); err != nil || o.Outcome.Verdict != hooks.Ack {
			b.Fatal(o, err)
		}
	}
}

// requestLine is what a worker gets for m.
func requestLine(id uint64, m hooks.Message) []byte {
	var rest, line Payload
	rest.Request(&m)
	line.Line(id, &rest)
	return line.Bytes()
}

// batchLine is what a worker gets for a batch.
func batchLine(id uint64, ms []hooks.Message) []byte {
	var rest, line Payload
	rest.Batch(ms)
	line.Line(id, &rest)
	return line.Bytes()
}
