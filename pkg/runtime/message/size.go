package message

import (
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	frameOverhead = 8  // type, channel, size and end octets
	headerFixed   = 14 // class, weight, body size and property flags
	// maxEntries is how many entries of one table or array amqp091-go reads.
	// Beyond it the client closes the connection that receives the message.
	maxEntries = 8192
)

// Room that a copy leaves for what the server adds when it delivers or
// dead-letters the message later on. Names have up to 255 bytes, and the server
// puts the names of queue, exchange and routing key into each entry of x-death
// (one for each queue and reason, about 900 bytes at most) and into six headers
// beside it, from 3.13 on (about 1,700 bytes). A redelivery adds x-delivery-count,
// and x-acquired-count since 4.3. With names of usual length a first death takes
// some 430 bytes on 3.10 and 520 on 4.3.
const (
	Spare        = 8 << 10
	SpareEntries = 32
)

// Crowded reports whether the headers of p leave no room for the server's entries.
func Crowded(p *amqp.Publishing) bool { return len(p.Headers) > maxEntries-SpareEntries }

// HeaderFrameSize is the size in bytes of the content header frame of p, its
// eight octets of framing included, as amqp091-go encodes it. The frame cannot
// be split; when it is larger than the negotiated frame size, RabbitMQ closes
// the connection (501).
//
// A header table with more than 8192 entries, which a receiving amqp091-go
// client would refuse, counts as larger than any frame.
func HeaderFrameSize(p *amqp.Publishing) int {
	if len(p.Headers) > maxEntries {
		return math.MaxInt32
	}
	n := frameOverhead + headerFixed
	if len(p.Headers) > 0 {
		n += tableSize(p.Headers)
	}
	for _, s := range []string{
		p.ContentType, p.ContentEncoding, p.CorrelationId, p.ReplyTo,
		p.Expiration, p.MessageId, p.Type, p.UserId, p.AppId,
	} {
		if s != "" {
			n += 1 + len(s)
		}
	}
	if p.DeliveryMode > 0 {
		n++
	}
	if p.Priority > 0 {
		n++
	}
	if !p.Timestamp.IsZero() {
		n += 8
	}
	return n
}

func tableSize(t amqp.Table) int {
	n := 4
	for k, v := range t {
		n += 1 + len(k) + fieldSize(v)
	}
	return n
}

// fieldSize is the size of a header value with its type octet.
func fieldSize(v any) int {
	switch x := v.(type) {
	case nil:
		return 1
	case bool, int8, uint8:
		return 2
	case int16, uint16:
		return 3
	case int, int32, uint32, float32:
		return 5
	case amqp.Decimal:
		return 6
	case int64, float64, time.Time:
		return 9
	case string:
		return 5 + len(x)
	case []byte:
		return 5 + len(x)
	case amqp.Table:
		return 1 + tableSize(x)
	case []any:
		n := 5
		for _, e := range x {
			n += fieldSize(e)
		}
		return n
	}
	return 0 // nothing else can be encoded; the client refuses to publish it
}
