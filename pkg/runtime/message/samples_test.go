package message_test

import (
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// beyondDates is a timestamp in milliseconds, as many producers set it: read in
// seconds it lies in the year 55840.
const beyondDates = 1_700_000_000_000

// oddHeaders has every header type that amqp091-go reads from the wire. A float
// that is no number is missing: Erlang has none, and RabbitMQ ends the
// connection that sends one with 541 on every series.
func oddHeaders() amqp.Table {
	return amqp.Table{
		"nil": nil, "true": true, "false": false,
		"int8": int8(-3), "uint8": uint8(200),
		"int16": int16(-300), "uint16": uint16(60_000),
		"int32": int32(math.MinInt32), "uint32": uint32(math.MaxUint32),
		"int64":   int64(math.MinInt64),
		"float32": float32(1.5), "float64": math.Pi,
		"decimal": amqp.Decimal{Scale: 2, Value: 12345},
		"text":    "žluť", "not utf-8": "\xff\xfe", "empty": "",
		"bytes": []byte{0xff, 0, 1}, "no bytes": []byte{},
		"sent":     time.Unix(beyondDates, 0),
		"long ago": time.Unix(-1, 0), "epoch": time.Unix(0, 0), "far": time.Unix(math.MaxInt64, 0),
		"array": []any{int32(1), "x", nil, amqp.Table{"k": true}, []any{[]byte{0}}},
		"table": amqp.Table{"a": amqp.Table{"b": amqp.Table{"c": uint16(7)}}, "none": amqp.Table{}},
	}
}

// fullDelivery has every property and the headers that copies treat specially.
func fullDelivery() *amqp.Delivery {
	h := oddHeaders()
	h["CC"] = []any{"audit"}
	h["x-death"] = []any{amqp.Table{"queue": "old", "reason": "rejected", "count": int64(2)}}
	for _, k := range []string{"x-first-death-queue", "x-first-death-reason", "x-first-death-exchange", "x-last-death-queue", "x-last-death-reason", "x-last-death-exchange"} {
		h[k] = "old"
	}
	h["x-delivery-count"], h["x-acquired-count"], h["x-delay"] = int64(1), int64(4), int32(-5000)
	return &amqp.Delivery{
		Headers: h, ContentType: "application/x-proto", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 7,
		CorrelationId: "c-1", ReplyTo: "amq.rabbitmq.reply-to.g1h2", Expiration: "60000", MessageId: "m-1",
		Timestamp: time.Unix(beyondDates, 0), Type: "order", UserId: "sender", AppId: "shop",
		Redelivered: true, Exchange: "events", RoutingKey: "order.new", DeliveryTag: 9, ConsumerTag: "t",
		Body: []byte{0x1f, 0x8b, 0},
	}
}
