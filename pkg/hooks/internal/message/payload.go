package message

import (
	"bytes"
	"encoding/base64"
	"io"
	"unicode/utf8"
)

// A Payload is what a process gets on its standard input. Large bodies are not
// in it but beside it, and are encoded while they are written: a body of 100 MB
// would otherwise be in memory once more, and six times more when each of its
// bytes has to be escaped.
type Payload struct {
	buf  []byte    // everything but the large bodies
	cuts []bodyCut // ascending
	size int64     // of the large bodies, as they are written
}

// bodyCut is a large body and its place in buf.
type bodyCut struct {
	at   int
	body []byte
	form bodyForm
}

// bodyForm is how a body is written.
type bodyForm int

const (
	asText   bodyForm = iota // with the escapes of JSON
	asBase64                 // base64
	asIs                     // byte for byte
)

// A body of more than largeBody bytes is not copied. encodeAtOnce is how much of
// it is encoded at a time; three bytes are four in base64.
const (
	largeBody    = 64 << 10
	encodeAtOnce = 24 << 10
	rawInBuffer  = 4 << 10 // data that is written as it is: one part of at most so much
)

// Raw is a payload of data alone, which it shares.
func Raw(data []byte) Payload {
	if len(data) <= rawInBuffer {
		return Payload{buf: data}
	}
	return Payload{cuts: []bodyCut{{body: data, form: asIs}}, size: int64(len(data))}
}

// Length is how many bytes Send writes.
func (p *Payload) Length() int64 { return int64(len(p.buf)) + p.size }

// Reset empties p and keeps its memory, unless that is more than keep bytes.
func (p *Payload) Reset(keep int) {
	clear(p.cuts) // what it holds must not live as long as p
	p.buf, p.cuts, p.size = p.buf[:0], p.cuts[:0], 0
	if cap(p.buf) > keep {
		p.buf = nil
	}
}

// add appends other.
func (p *Payload) add(other *Payload) {
	for _, c := range other.cuts {
		c.at += len(p.buf)
		p.cuts = append(p.cuts, c)
	}
	p.buf = append(p.buf, other.buf...)
	p.size += other.size
}

// body appends the field of a body.
//
// It is text when it is UTF-8, and base64 otherwise. Control characters, each of
// which takes six bytes in JSON, are rare in text: a body that has some and would
// be longer with its escapes than in base64 is no text either.
func (p *Payload) body(body []byte) {
	if len(body) > largeBody {
		p.largeBody(body)
		return
	}
	before := len(p.buf)
	if utf8.Valid(body) {
		p.buf = appendUTF8(append(p.buf, textField...), body)
		written := len(p.buf) - before - len(textField) - len(`""`)
		if written <= base64.StdEncoding.EncodedLen(len(body)) || !hasControls(body) {
			return
		}
		p.buf = p.buf[:before]
	}
	p.buf = append(base64.StdEncoding.AppendEncode(append(p.buf, base64Field...), body), '"')
}

const (
	textField   = `"body":`
	base64Field = `"body_base64":"`
)

// largeBody appends the field of a body that is encoded while it is written.
func (p *Payload) largeBody(body []byte) {
	form, size := asBase64, base64.StdEncoding.EncodedLen(len(body))
	if utf8.Valid(body) {
		if escaped := escapedLen(body); escaped <= size || !hasControls(body) {
			form, size = asText, escaped
		}
	}
	if form == asText {
		p.buf = append(append(p.buf, textField...), '"')
	} else {
		p.buf = append(p.buf, base64Field...)
	}
	p.cuts = append(p.cuts, bodyCut{at: len(p.buf), body: body, form: form})
	p.size += int64(size)
	p.buf = append(p.buf, '"')
}

// escapedLen is how long appendUTF8 makes body, without the quotes.
func escapedLen(body []byte) int {
	n := len(body)
	for _, c := range body {
		if c < 0x20 || c == '"' || c == '\\' {
			n += len(escapeJSON(c)) - 1
		}
	}
	return n
}

// hasControls reports whether body has a control character that text has not.
func hasControls(body []byte) bool {
	for _, c := range body {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' {
			return true
		}
	}
	return false
}

// Send writes p and returns how many bytes went out. scratch is used for what
// has to be encoded, and returned for the next time.
func (p *Payload) Send(w io.Writer, scratch []byte) (n int64, _ []byte, err error) {
	from := 0
	put := func(b []byte) bool {
		if len(b) == 0 {
			return true
		}
		var wrote int
		wrote, err = w.Write(b)
		n += int64(wrote)
		return err == nil
	}
	for _, c := range p.cuts {
		if !put(p.buf[from:c.at]) {
			return n, scratch, err
		}
		from = c.at
		for rest := c.body; len(rest) > 0; {
			var piece []byte
			piece, rest, scratch = c.form.next(rest, scratch)
			if !put(piece) {
				return n, scratch, err
			}
		}
	}
	put(p.buf[from:])
	return n, scratch, err
}

// Bytes returns all that Send writes.
func (p *Payload) Bytes() []byte {
	if len(p.cuts) == 0 {
		return p.buf
	}
	var all bytes.Buffer
	all.Grow(int(p.Length()))
	_, _, _ = p.Send(&all, nil) // a buffer takes everything
	return all.Bytes()
}

// next encodes the beginning of body and returns it with the rest.
func (f bodyForm) next(body, scratch []byte) (piece, rest, _ []byte) {
	if f == asIs {
		return body, nil, scratch
	}
	head := body[:min(len(body), encodeAtOnce)]
	if f == asBase64 {
		scratch = base64.StdEncoding.AppendEncode(scratch[:0], head)
	} else {
		scratch = appendEscaped(scratch[:0], head)
	}
	return scratch, body[len(head):], scratch
}
