package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// maxAnswerLine bounds one line that a worker may answer with.
const maxAnswerLine = 1 << 20

// request appends the part of a request line that is the same whichever process
// gets it: all but the id, which comes first. schema/worker-request describes the
// whole.
func (p *payload) request(m *hooks.Message) {
	p.buf = append(p.buf, ',')
	p.message(m)
	p.buf = append(p.buf, "}\n"...)
}

// batch is request for several messages in one request.
func (p *payload) batch(ms []hooks.Message) {
	p.buf = append(p.buf, `,"messages":[`...)
	p.messages(ms, ',')
	p.buf = append(p.buf, "]}\n"...)
}

// messages appends each message as an object, with a separator between them.
// Every kind of hook gets the messages of a batch in this form.
func (p *payload) messages(ms []hooks.Message, between byte) {
	for i := range ms {
		if i > 0 {
			p.buf = append(p.buf, between)
		}
		p.buf = append(p.buf, '{')
		p.message(&ms[i])
		p.buf = append(p.buf, '}')
	}
}

// appendMessages is messages for a hook that takes them in one piece.
func appendMessages(b []byte, ms []hooks.Message, between byte) []byte {
	p := payload{buf: b}
	p.messages(ms, between)
	return p.bytes()
}

// message appends the fields of one message, its body first.
func (p *payload) message(m *hooks.Message) {
	p.body(m.Body)
	p.buf = appendMetadataFields(append(p.buf, ','), m)
}

// line appends a request with its id.
func (p *payload) line(id uint64, rest *payload) {
	p.buf = strconv.AppendUint(append(p.buf, `{"id":"`...), id, 10)
	p.buf = append(p.buf, '"')
	p.add(rest)
}

// workerAnswer is an answer line as it was written; an absent field is empty.
type workerAnswer struct {
	id, outcome, delay, reason []byte
	idValue                    []byte // an id that is not text
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
	if len(a.id) == 0 && a.idValue == nil {
		return 0, r, errors.New("has no id")
	}
	if a.idValue != nil {
		return 0, r, fmt.Errorf("has the id %s, which is no text: write it as it was sent, in quotes, such as \"id\":\"7\"", printable(string(a.idValue), 64))
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

// parseID reads an id as a request line has it, and in no other form: two
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
// without escapes and different, and allocates nothing. It reports false for any
// other.
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
		if to == nil || *to != nil {
			return false // a field that is there twice is for the thorough reader
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
	fields, err := members(line)
	if err != nil {
		return nil, fmt.Errorf("is no JSON object: %s", printable(string(line), 256))
	}
	return decodeFields(fields)
}

// decodeFields reads the fields of an answer. One that is there twice is a
// problem of the answer; two ids are an error, since nobody knows whose it is.
func decodeFields(fields []member) (*workerAnswer, error) {
	a := &workerAnswer{}
	seen := map[string]bool{}
	for _, f := range fields {
		if twice := seen[f.name]; twice && f.name == "id" {
			return nil, errors.New("has two ids")
		} else if twice && answerFields[f.name] {
			a.problem = fmt.Errorf("%s is there twice", f.name)
		}
		seen[f.name] = true
		if string(f.value) != "null" {
			a.set(f.name, f.value)
		}
	}
	if seen["reply"] && seen["reply_base64"] && a.problem == nil {
		a.problem = errors.New("both reply and reply_base64")
	}
	return a, nil
}

// answerFields are the names that mean something in an answer.
var answerFields = map[string]bool{
	"id": true, "outcome": true, "outcomes": true, "delay": true, "reason": true, "reply": true, "reply_base64": true,
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
		a.id, a.idValue = nil, raw
	case "reply":
		a.problem = errors.New("reply is not text")
	}
}

// setEach takes the outcomes of a batch. One that cannot be read fails its
// message; the others stand.
func (a *workerAnswer) setEach(raw json.RawMessage) {
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	for _, text := range items {
		var fields []member
		if fields, err = members(text); err != nil {
			break
		}
		a.each = append(a.each, itemOutcome(fields))
	}
	if err != nil {
		a.problem = errors.New("outcomes is not a list of objects")
		return
	}
	a.hasEach = true
}

// itemOutcome reads one of the outcomes of a batch.
func itemOutcome(fields []member) hooks.Outcome {
	item, err := decodeFields(fields)
	if err != nil { // ids mean nothing here, and two of them no more
		item = &workerAnswer{problem: errors.New("id is there twice")}
	}
	return item.settled()
}
