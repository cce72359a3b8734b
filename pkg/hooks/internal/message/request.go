package message

import (
	"strconv"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// Lines is a payload with a line for each message.
func Lines(ms []hooks.Message) Payload {
	p := Payload{buf: make([]byte, 0, BatchSize(ms))}
	p.messages(ms, '\n')
	p.buf = append(p.buf, '\n')
	return p
}

// Request appends the part of a request line that is the same whichever process
// gets it: all but the id, which comes first. schema/worker-request describes the
// whole.
func (p *Payload) Request(m *hooks.Message) {
	p.buf = append(p.buf, ',')
	p.message(m)
	p.buf = append(p.buf, "}\n"...)
}

// Batch is Request for several messages in one request.
func (p *Payload) Batch(ms []hooks.Message) {
	p.buf = append(p.buf, `,"messages":[`...)
	p.messages(ms, ',')
	p.buf = append(p.buf, "]}\n"...)
}

// messages appends each message as an object, with a separator between them.
// Every kind of hook gets the messages of a batch in this form.
func (p *Payload) messages(ms []hooks.Message, between byte) {
	for i := range ms {
		if i > 0 {
			p.buf = append(p.buf, between)
		}
		p.buf = append(p.buf, '{')
		p.message(&ms[i])
		p.buf = append(p.buf, '}')
	}
}

// AppendMessages appends each message as an object, with a separator between them,
// for a hook that takes them in one piece.
func AppendMessages(b []byte, ms []hooks.Message, between byte) []byte {
	p := Payload{buf: b}
	p.messages(ms, between)
	return p.Bytes()
}

// message appends the fields of one message, its body first.
func (p *Payload) message(m *hooks.Message) {
	p.body(m.Body)
	p.buf = appendMetadataFields(append(p.buf, ','), m)
}

// Line appends a request with its id.
func (p *Payload) Line(id uint64, rest *Payload) {
	p.buf = strconv.AppendUint(append(p.buf, `{"id":"`...), id, 10)
	p.buf = append(p.buf, '"')
	p.add(rest)
}
