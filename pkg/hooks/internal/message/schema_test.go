package message

import (
	"math"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/schema"
)

func TestRequest_KeepsToTheSchema(t *testing.T) {
	t.Parallel()
	valid := hooktest.Validator(t, schema.WorkerRequest)
	for name, m := range map[string]hooks.Message{
		"the least": {Attempt: 1},
		"text":      {Attempt: 2, MaxAttempts: 5, Body: []byte("line\nbreak \x00 \"quoted\" ü")},
		"bytes":     {Attempt: 1, Body: []byte{0xff, 0xfe}},
		"every kind of value": {
			Attempt: 1, Queue: "q\xff", Timestamp: math.MinInt64, Priority: 255, DeliveryMode: 2, Redelivered: true,
			Headers: map[string]any{
				"nil": nil, "bool": true, "int": int64(math.MinInt64), "uint": uint64(math.MaxUint64), "float": 1.5,
				"nan": math.NaN(), "inf": math.Inf(-1), "text": "x", "bad\xff": "\xff", "bytes": []byte{1},
				"array": []any{int64(1), "x", []any{}}, "table": map[string]any{"a": map[string]any{}},
			},
		},
	} {
		line := requestLine(math.MaxInt64, m)
		if err := valid(line); err != nil {
			t.Errorf("%s: %s%v", name, line, err)
		}
	}
	batch := []hooks.Message{{Attempt: 1, Body: []byte("a\nb")}, {Attempt: 2, Body: []byte{0xff}}}
	if line := batchLine(1, batch); valid(line) != nil {
		t.Errorf("%s%v", line, valid(line))
	}
	for _, line := range []string{`{}`, `{"id":"1","messages":[]}`, `{"id":"1","messages":[{}]}`, `{"id":"1","body":"","body_base64":""}`} {
		if valid([]byte(line)) == nil {
			t.Errorf("the schema takes %s", line)
		}
	}
}

// The schema takes exactly what rsctl takes.
func TestReadAnswer_TakesWhatTheSchemaTakes(t *testing.T) {
	t.Parallel()
	valid := hooktest.Validator(t, schema.WorkerResponse)
	for _, line := range []string{
		`{"id":"1","outcome":"ack"}`,
		`{"id":"1","outcome":"drop","reason":"no such customer"}`,
		`{"id":"1","outcome":"retry","reason":null}`,
		`{"id":"1","outcome":"retry_after","delay":"30s"}`,
		`{"id":"1","outcome":"ack","reply":"x"}`,
		`{"id":"1","outcome":"ack","reply_base64":"AP8=","extra":[1]}`,
		`{}`,
		`{"id":"1"}`,
		`{"outcome":"ack"}`,
		`{"id":1,"outcome":"ack"}`,
		`{"id":"01","outcome":"ack"}`,
		`{"id":"1","outcome":"done"}`,
		`{"id":"1","outcome":null}`,
		`{"id":"1","outcome":"retry_after"}`,
		`{"id":"1","outcome":"retry_after","delay":null}`,
		`{"id":"1","outcome":"retry_after","delay":30}`,
		`{"id":"1","outcome":"ack","reply":{}}`,
		`{"id":"1","outcomes":[{"outcome":"ack"},{"outcome":"retry_after","delay":"1s","reason":"x"}]}`,
		`{"id":"1","outcome":"ack","outcomes":[{"outcome":"ack"}]}`,
		`{"id":"1","outcomes":["ack"]}`,
		`{"id":"1","outcomes":"ack"}`,
		`["1","ack"]`,
	} {
		_, r, err := ReadAnswer([]byte(line))
		taken := err == nil && (r.Outcome.Verdict != hooks.Failed || r.OfBatch)
		if problem := valid([]byte(line)); taken != (problem == nil) {
			t.Errorf("%s: taken by rsctl: %v, by the schema: %v", line, taken, problem)
		}
	}
}
