package membroker

import (
	"slices"
	"strconv"
	"time"
)

// message is one message, or one copy of it in one queue.
type message struct {
	exchange, key string
	flags         uint16
	before        []byte // properties in front of the headers
	headers       table
	between       []byte // properties between the headers and the expiration
	expiration    string
	after         []byte // the other properties
	body          []byte
	deaths        []death
	expires       time.Time // zero: never

	seq             uint64 // place in its queue
	redelivered     bool
	count, acquired int64 // of a quorum queue: failures, and deliveries in all
}

// death is an entry of x-death.
type death struct {
	queue, reason, exchange, key string
	count                        int64
	at                           time.Time
}

// Flags of the properties, in their order.
const (
	hasContentType     = 1 << 15
	hasContentEncoding = 1 << 14
	hasHeaders         = 1 << 13
	hasDeliveryMode    = 1 << 12
	hasPriority        = 1 << 11
	hasCorrelationID   = 1 << 10
	hasReplyTo         = 1 << 9
	hasExpiration      = 1 << 8
)

// parseHeader reads a content header, and how long the body will be.
func parseHeader(payload []byte) (message, uint64) {
	r := &reader{payload}
	r.long() // class and weight
	size := r.number()
	m := message{flags: r.short()}
	start := r.b
	for _, flag := range []uint16{hasContentType, hasContentEncoding} {
		if m.flags&flag != 0 {
			r.text()
		}
	}
	m.before = slices.Clone(start[:len(start)-len(r.b)])
	if m.flags&hasHeaders != 0 {
		m.headers = r.table()
	}
	start = r.b
	for _, flag := range []uint16{hasDeliveryMode, hasPriority} {
		if m.flags&flag != 0 {
			r.octet()
		}
	}
	for _, flag := range []uint16{hasCorrelationID, hasReplyTo} {
		if m.flags&flag != 0 {
			r.text()
		}
	}
	m.between = slices.Clone(start[:len(start)-len(r.b)])
	if m.flags&hasExpiration != 0 {
		m.expiration = r.text()
	}
	m.after = slices.Clone(r.b)
	return m, size
}

// lives is how long the message may stay in a queue, by its own word.
func (m *message) lives() (time.Duration, bool) {
	ms, err := strconv.ParseInt(m.expiration, 10, 64)
	return time.Duration(ms) * time.Millisecond, err == nil
}

// died notes a death in the way of x-death.
func (m *message) died(queue, reason string, at time.Time) {
	d := death{queue: queue, reason: reason, exchange: m.exchange, key: m.key, at: at}
	m.deaths = slices.Clone(m.deaths)
	for i, old := range m.deaths {
		if old.queue == queue && old.reason == reason {
			d.count = old.count
			m.deaths = slices.Delete(m.deaths, i, i+1)
			break
		}
	}
	d.count++
	m.deaths = slices.Insert(m.deaths, 0, d)
}

// content returns the content header and body frames.
func (m *message) content(channel uint16, headers table) []frame {
	if len(m.deaths) > 0 {
		headers = m.history(headers)
	}
	flags := m.flags
	if len(headers) > 0 {
		flags |= hasHeaders
	}
	out := arguments{}.short(classBasic).short(0).number(uint64(len(m.body))).short(flags)
	out = append(out, m.before...)
	if flags&hasHeaders != 0 {
		out = out.longText(string(headers.encode()))
	}
	out = append(out, m.between...)
	if flags&hasExpiration != 0 {
		out = out.text(m.expiration)
	}
	frames := []frame{{headerFrame, channel, append(out, m.after...)}}
	for part := range slices.Chunk(m.body, frameMax-headBytes-1) {
		frames = append(frames, frame{bodyFrame, channel, part})
	}
	return frames
}

func (m *message) history(headers table) table {
	var all [][]byte
	for _, d := range m.deaths {
		all = append(all, tableValue(table{
			{"count", intValue(d.count)},
			{"reason", textValue(d.reason)},
			{"queue", textValue(d.queue)},
			{"exchange", textValue(d.exchange)},
			{"routing-keys", listValue([][]byte{textValue(d.key)})},
			{"time", arguments{'T'}.number(uint64(d.at.Unix()))},
		}))
	}
	first := m.deaths[len(m.deaths)-1]
	headers = headers.with("x-death", listValue(all))
	headers = headers.with("x-first-death-queue", textValue(first.queue))
	headers = headers.with("x-first-death-reason", textValue(first.reason))
	return headers.with("x-first-death-exchange", textValue(first.exchange))
}
