package message

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// MaxAnswerLine bounds one line that a worker may answer with.
const MaxAnswerLine = 1 << 20

// An object is an answer as it was written; an absent field is empty.
type object struct {
	id, outcome, delay, reason []byte
	idValue                    []byte // an id that is not text
	reply                      []byte
	hasReply                   bool
	each                       []hooks.Outcome // of a batch, one per message
	hasEach                    bool
	problem                    error // why the rest of the line cannot be used
}

// An Answer is what an answer says: of one message, or of each of a batch.
type Answer struct {
	Outcome hooks.Outcome
	Each    []hooks.Outcome // with OfBatch
	OfBatch bool
}

// ReadAnswer reads one line of a worker. An error means that it is not clear
// which request was answered; an answer to a known request that says nothing
// usable is a Failed outcome.
func ReadAnswer(line []byte) (id uint64, r Answer, err error) {
	var a object
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
		return 0, r, fmt.Errorf("has the id %s, which is no text: write it as it was sent, in quotes, such as \"id\":\"7\"", Printable(string(a.idValue), 64))
	}
	id, ok := parseID(a.id)
	if !ok {
		return 0, r, fmt.Errorf("has the id %q, which no request had", Printable(string(a.id), 64))
	}
	if a.hasEach && a.problem == nil && len(a.outcome) == 0 {
		return id, Answer{Each: a.each, OfBatch: true}, nil
	}
	return id, Answer{Outcome: a.settled()}, nil
}

// settled is read, with an answer that says nothing usable as a failure.
func (a *object) settled() hooks.Outcome {
	o, err := a.read()
	if err != nil {
		return hooks.Outcome{Reason: JoinReason("malformed answer", err.Error())}
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
func (a *object) read() (o hooks.Outcome, err error) {
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
		return o, fmt.Errorf("outcome %q is none of ack, drop, retry, retry_after", Printable(string(a.outcome), 64))
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
		o.Reason = Printable(string(a.reason), MaxReason)
	}
	if a.hasReply {
		o.Reply = append([]byte{}, a.reply...)
	}
	return o, nil
}

// field returns where the value of a field that holds text goes.
func (a *object) field(name []byte) *[]byte {
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

// decodeAnswer reads any line. Names are compared exactly, and fields that it
// does not know are passed over.
func decodeAnswer(line []byte) (*object, error) {
	fields, err := members(line)
	if err != nil {
		return nil, fmt.Errorf("is no JSON object: %s", Printable(string(line), 256))
	}
	return decodeFields(fields)
}

// decodeFields reads the fields of an answer. One that is there twice is a
// problem of the answer; two ids are an error, since it cannot be known whose it is.
func decodeFields(fields []member) (*object, error) {
	a := &object{}
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
func (a *object) set(name string, raw json.RawMessage) {
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
func (a *object) setEach(raw json.RawMessage) {
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
		item = &object{problem: errors.New("id is there twice")}
	}
	return item.settled()
}
