package frames

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Mark stands in the place of headers that amqp091-go cannot read.
type Mark struct {
	Reason string // one line, about the message
	// Died says that the headers may hold a death history, which can keep the
	// server from dead-lettering the message.
	Died bool
}

// markHeader is the only header of a marked message. Its value begins with a
// token that nobody outside of this process knows, so that no publisher can send
// it.
const markHeader = "x-rsctl-unreadable"

var token = rand.Text()

// Marked returns the mark of a message whose headers could not be read.
func Marked(h amqp.Table) (Mark, bool) {
	if len(h) != 1 {
		return Mark{}, false
	}
	text, _ := h[markHeader].(string)
	text, ours := strings.CutPrefix(text, token)
	if !ours {
		return Mark{}, false
	}
	return Mark{Reason: text[1:], Died: text[0] == '+'}, true
}

// Headers is the header table of a message that is marked with m.
func (m Mark) Headers() amqp.Table { return amqp.Table{markHeader: m.text()} }

func (m Mark) text() string {
	if m.Died {
		return token + "+" + m.Reason
	}
	return token + "-" + m.Reason
}

// table is m.Headers on the wire, with its length.
func (m Mark) table() []byte {
	text := m.text()
	b := append(make([]byte, 4, 64+len(text)), byte(len(markHeader)))
	b = append(b, markHeader...)
	b = append(b, 'S')
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// marked is the content header frame that takes the place of one that cannot be
// read: it has the same class and body size, the properties that can be told
// apart, and m instead of the headers.
func marked(head, payload []byte, c content, m Mark) []byte {
	flags := uint16(flagHeaders)
	var before, after []byte
	if c.whole {
		flags |= binary.BigEndian.Uint16(payload[contentFixed-2:])
		before, after = payload[contentFixed:c.table[0]], payload[c.table[1]:c.end]
	}
	out := append([]byte(nil), head[:headBytes]...)
	out = append(out, payload[:contentFixed-2]...)
	out = binary.BigEndian.AppendUint16(out, flags)
	out = append(out, before...)
	out = append(out, m.table()...)
	out = append(out, after...)
	binary.BigEndian.PutUint32(out[3:], uint32(len(out)-headBytes))
	return append(out, frameEnd)
}

// died reports whether headers may hold a death history.
func died(table []byte) bool {
	return bytes.Contains(table, []byte("x-death")) || bytes.Contains(table, []byte("x-first-death-"))
}
