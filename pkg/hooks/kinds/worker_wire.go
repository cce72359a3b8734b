package kinds

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// maxAnswerLine bounds one line that a worker may answer with.
const maxAnswerLine = 1 << 20

// appendRequest appends the part of a request line that is the same whichever
// process gets it: all but the id, which comes first. schema/worker-request
// describes the whole.
func appendRequest(b []byte, m *hooks.Message) []byte {
	b = appendMessage(append(b, ','), m)
	return append(b, "}\n"...)
}

// appendBatch is appendRequest for several messages in one request.
func appendBatch(b []byte, ms []hooks.Message) []byte {
	b = appendMessages(append(b, `,"messages":[`...), ms, ',')
	return append(b, "]}\n"...)
}

// appendMessages appends each message as an object, with a separator between
// them. Every kind of hook gets the messages of a batch in this form.
func appendMessages(b []byte, ms []hooks.Message, between byte) []byte {
	for i := range ms {
		if i > 0 {
			b = append(b, between)
		}
		b = append(appendMessage(append(b, '{'), &ms[i]), '}')
	}
	return b
}

// appendMessage appends the fields of one message, its body first.
func appendMessage(b []byte, m *hooks.Message) []byte {
	if utf8.Valid(m.Body) {
		b = appendUTF8(append(b, `"body":`...), m.Body)
	} else {
		b = base64.StdEncoding.AppendEncode(append(b, `"body_base64":"`...), m.Body)
		b = append(b, '"')
	}
	return appendMetadataFields(append(b, ','), m)
}

// appendRequestLine puts the id before the rest.
func appendRequestLine(b []byte, id uint64, rest []byte) []byte {
	b = strconv.AppendUint(append(b, `{"id":"`...), id, 10)
	return append(append(b, '"'), rest...)
}

// workerAnswer is an answer line as it was written; an absent field is empty.
type workerAnswer struct {
	id, outcome, delay, reason []byte
	reply                      []byte
	hasReply                   bool
	each                       []hooks.Outcome // of a batch, one per message
	hasEach                    bool
	problem                    error // why the rest of the line cannot be used
}

// readAnswer reads one line of a worker. An error means that it is not clear
// which request was answered; an answer to a known request that says nothing
// usable is a Failed outcome.
func readAnswer(line []byte) (id uint64, r result, err error) {
	var a workerAnswer
	if !a.scan(line) {
		decoded, err := decodeAnswer(line)
		if err != nil {
			return 0, r, err
		}
		a = *decoded
	}
	if len(a.id) == 0 {
		return 0, r, errors.New("has no id")
	}
	id, ok := parseID(a.id)
	if !ok {
		return 0, r, fmt.Errorf("has the id %q, which no request had", printable(string(a.id), 64))
	}
	if a.hasEach && a.problem == nil && len(a.outcome) == 0 {
		return id, result{each: a.each, ofBatch: true}, nil
	}
	return id, result{outcome: a.settled()}, nil
}

// settled is read, with an answer that says nothing usable as a failure.
func (a *workerAnswer) settled() hooks.Outcome {
	o, err := a.read()
	if err != nil {
		return hooks.Outcome{Reason: joinReason("malformed answer", err.Error())}
	}
	return o
}

// parseID reads an id as appendRequestLine writes it, and in no other form: two
// spellings of one request would be two answers.
func parseID(text []byte) (id uint64, ok bool) {
	if len(text) == 0 || len(text) > 19 || text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, true
}

// read turns the fields into an outcome.
func (a *workerAnswer) read() (o hooks.Outcome, err error) {
	switch {
	case a.problem != nil:
		return o, a.problem
	case a.hasEach:
		return o, errors.New("both outcome and outcomes")
	case len(a.outcome) == 0:
		return o, errors.New("no outcome")
	}
	verdict, known := verdicts[string(a.outcome)]
	if !known {
		return o, fmt.Errorf("outcome %q is none of ack, drop, retry, retry_after", printable(string(a.outcome), 64))
	}
	o.Verdict = verdict
	if verdict == hooks.RetryAfter {
		if len(a.delay) == 0 {
			return o, errors.New(`retry_after needs a delay, such as "delay":"30s"`)
		}
		if o.Delay, err = parseDelay(string(a.delay)); err != nil {
			return o, err
		}
	}
	if len(a.reason) > 0 {
		o.Reason = printable(string(a.reason), maxReason)
	}
	if a.hasReply {
		o.Reply = append([]byte{}, a.reply...)
	}
	return o, nil
}

// field returns where the value of a field that holds text goes.
func (a *workerAnswer) field(name []byte) *[]byte {
	switch string(name) {
	case "id":
		return &a.id
	case "outcome":
		return &a.outcome
	case "delay":
		return &a.delay
	case "reason":
		return &a.reason
	case "reply":
		a.hasReply = true
		return &a.reply
	}
	return nil
}

// scan reads the common line, an object of known fields whose values are text
// without escapes, and allocates nothing. It reports false for any other.
func (a *workerAnswer) scan(line []byte) bool {
	rest, ok := cutToken(line, '{')
	for ok {
		var name, value []byte
		if name, rest, ok = cutText(rest); !ok {
			return false
		}
		if rest, ok = cutToken(rest, ':'); !ok {
			return false
		}
		if value, rest, ok = cutText(rest); !ok {
			return false
		}
		to := a.field(name)
		if to == nil {
			return false
		}
		*to = value
		if end, closed := cutToken(rest, '}'); closed {
			return len(trimJSON(end)) == 0
		}
		rest, ok = cutToken(rest, ',')
	}
	return false
}

func trimJSON(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

func cutToken(b []byte, c byte) (rest []byte, ok bool) {
	b = trimJSON(b)
	if len(b) == 0 || b[0] != c {
		return b, false
	}
	return b[1:], true
}

// cutText reads a JSON string of printable ASCII without escapes.
func cutText(b []byte) (text, rest []byte, ok bool) {
	b, ok = cutToken(b, '"')
	if !ok {
		return nil, b, false
	}
	for i, c := range b {
		switch {
		case c == '"':
			return b[:i], b[i+1:], true
		case c == '\\' || c < 0x20 || c >= 0x7f:
			return nil, b, false
		}
	}
	return nil, b, false
}

// decodeAnswer reads any line. Names are compared exactly, and fields that it
// does not know are passed over.
func decodeAnswer(line []byte) (*workerAnswer, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("is no JSON object: %s", printable(string(line), 256))
	}
	return decodeFields(fields), nil
}

func decodeFields(fields map[string]json.RawMessage) *workerAnswer {
	a := &workerAnswer{}
	for name, raw := range fields {
		if string(raw) != "null" {
			a.set(name, raw)
		}
	}
	return a
}

// set takes one field. A value of the wrong kind is kept as it is written: it
// is shown, and is no valid value of any field.
func (a *workerAnswer) set(name string, raw json.RawMessage) {
	if name == "reply_base64" {
		a.hasReply = true
		if json.Unmarshal(raw, &a.reply) != nil {
			a.problem = errors.New("reply_base64 is not base64")
		}
		return
	}
	if name == "outcomes" {
		a.setEach(raw)
		return
	}
	to := a.field([]byte(name))
	if to == nil {
		return
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*to = []byte(text)
		return
	}
	*to = raw
	switch name {
	case "id":
		a.id = append([]byte("not text: "), raw...)
	case "reply":
		a.problem = errors.New("reply is not text")
	}
}

// setEach takes the outcomes of a batch. One that cannot be read fails its
// message; the others stand.
func (a *workerAnswer) setEach(raw json.RawMessage) {
	var items []map[string]json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		a.problem = errors.New("outcomes is not a list of objects")
		return
	}
	a.hasEach = true
	for _, fields := range items {
		item := decodeFields(fields)
		a.each = append(a.each, item.settled())
	}
}
