package message_test

import (
	"math"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestReadCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		value   any
		want    int
		problem string // part of it; "" for none
	}{
		{"decimal text counts", "2", 2, ""},
		{"text with leading zeros is decimal", "0010", 10, ""},
		{"int8 counts", int8(2), 2, ""},
		{"uint8 counts", uint8(200), 200, ""},
		{"int16 counts", int16(2), 2, ""},
		{"uint16 counts", uint16(2), 2, ""},
		{"int32 counts", int32(2), 2, ""},
		{"uint32 counts", uint32(2), 2, ""},
		{"int64 counts", int64(2), 2, ""},
		{"zero counts", int64(0), 0, ""},
		{"the largest count is kept", int64(math.MaxInt32 - 1), math.MaxInt32 - 1, ""},
		{"a negative integer is a problem", int32(-1), 0, "negative (-1)"},
		{"negative text is a problem", "-1", 0, `negative ("-1")`},
		{"an integer that overflows is a problem", int64(math.MaxInt64), 0, "too large (9223372036854775807)"},
		{"a uint32 that overflows is a problem", uint32(math.MaxUint32), 0, "too large (4294967295)"},
		{"text beyond 64 bits is a problem", "99999999999999999999", 0, "too large"},
		{"a float is a problem", 2.0, 0, "no count (float64)"},
		{"a float32 is a problem", float32(2), 0, "no count (float32)"},
		{"a word is a problem", "two", 0, `no count ("two")`},
		{"empty text is a problem", "", 0, `no count ("")`},
		{"a sign is a problem", "+2", 0, "no count"},
		{"a lone minus is a problem", "-", 0, "no count"},
		{"white space is a problem", " 2", 0, "no count"},
		{"other digits are a problem", "٢", 0, "no count"},
		{"an exponent is a problem", "1e1", 0, "no count"},
		{"a line break is escaped", "1\n2", 0, `no count ("1\n2")`},
		{"nothing is a problem", nil, 0, "no count (<nil>)"},
		{"true is a problem", true, 0, "no count (bool)"},
		{"bytes are a problem", []byte("2"), 0, "no count ([]uint8)"},
		{"a decimal is a problem", amqp.Decimal{Value: 2}, 0, "no count"},
		{"a timestamp is a problem", time.Unix(2, 0), 0, "no count (time.Time)"},
		{"a table is a problem", amqp.Table{"n": int32(2)}, 0, "no count"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &amqp.Delivery{Headers: amqp.Table{message.HeaderCount: tt.value}}
			got := message.Read("orders", settle.Classic, d)
			if got.Counted != tt.want || got.Attempt != tt.want+1 {
				t.Errorf("Counted, Attempt = %d, %d, want %d, %d", got.Counted, got.Attempt, tt.want, tt.want+1)
			}
			if (got.CountProblem == "") != (tt.problem == "") || !strings.Contains(got.CountProblem, tt.problem) {
				t.Errorf("CountProblem = %q, want %q in it", got.CountProblem, tt.problem)
			}
			if strings.Contains(got.CountProblem, "\n") || len(got.CountProblem) > 400 {
				t.Errorf("CountProblem = %q, want one short line", got.CountProblem)
			}
		})
	}
}

func TestReadProblemStaysShort(t *testing.T) {
	t.Parallel()
	d := &amqp.Delivery{Headers: amqp.Table{message.HeaderCount: strings.Repeat("\x00", 100_000)}}
	if got := message.Read("orders", settle.Classic, d).CountProblem; got == "" || len(got) > 300 {
		t.Errorf("CountProblem has %d bytes, want a short line", len(got))
	}
}

// deaths is a history as the broker writes it.
func deaths(queue, reason string) []any {
	return []any{amqp.Table{"queue": queue, "reason": reason, "count": int64(1), "exchange": "", "routing-keys": []any{queue}}}
}

func TestReadScope(t *testing.T) {
	t.Parallel()
	type table = amqp.Table
	tests := []struct {
		name          string
		headers       table
		counted       int
		exchange, key string
	}{
		{"a first delivery speaks for itself", nil, 0, "events", "order.new"},
		{"a ruststream copy's count is believed", table{message.HeaderCount: "2"}, 2, "events", "order.new"},
		{
			"a publisher cannot say where its message came from",
			table{message.HeaderCount: "2", message.HeaderQueue: "orders", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"},
			2, "events", "order.new",
		},
		{
			"another queue's count and origin are ignored",
			table{message.HeaderCount: "2", message.HeaderQueue: "bills", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"},
			0, "events", "order.new",
		},
		{
			"another queue's malformed count is no problem",
			table{message.HeaderCount: -1.5, message.HeaderQueue: "bills"}, 0, "events", "order.new",
		},
		{
			"nor call it a dead letter to be believed",
			table{message.HeaderQueue: "bills", message.HeaderReason: "max_attempts", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"},
			0, "events", "order.new",
		},
		{
			"a count from before this queue gave the message up is spent",
			table{message.HeaderCount: "2", message.HeaderQueue: "orders", "x-death": deaths("orders", "rejected")}, 0, "events", "order.new",
		},
		{
			"so is one from before the server's delivery limit",
			table{message.HeaderCount: "2", "x-death": deaths("orders", "delivery_limit")}, 0, "events", "order.new",
		},
		{
			"a copy that has waited elsewhere keeps its count",
			table{message.HeaderCount: "2", "x-death": deaths("orders.retry", "expired")}, 2, "events", "order.new",
		},
		{
			"a message that expired in this queue keeps its count",
			table{message.HeaderCount: "2", "x-death": deaths("orders", "expired")}, 2, "events", "order.new",
		},
		{"a history of another shape says nothing", table{message.HeaderCount: "2", "x-death": []any{"orders", nil}}, 2, "events", "order.new"},
		{"a queue mark of another type is no mark", table{message.HeaderCount: "2", message.HeaderQueue: int64(1)}, 2, "events", "order.new"},
		{"half an origin is none", table{message.HeaderExchange: "e"}, 0, "events", "order.new"},
		{"an origin of another type is none", table{message.HeaderExchange: "e", message.HeaderRoutingKey: int32(1)}, 0, "events", "order.new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &amqp.Delivery{Exchange: "events", RoutingKey: "order.new", Headers: tt.headers}
			got := message.Read("orders", settle.Classic, d)
			want := message.Reading{Attempt: tt.counted + 1, Counted: tt.counted, Exchange: tt.exchange, RoutingKey: tt.key}
			if got != want {
				t.Errorf("Read() =\n %+v, want\n %+v", got, want)
			}
		})
	}
}

// The headers of a copy are believed where copies come from, and nowhere else.
func TestTheOriginIsBelievedOnlyWhereOurOwnCopiesComeFrom(t *testing.T) {
	t.Parallel()
	copied := amqp.Table{message.HeaderCount: "2", message.HeaderQueue: "orders", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"}
	buried := amqp.Table{message.HeaderQueue: "bills", message.HeaderReason: "max_attempts", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"}
	foreign := amqp.Table{message.HeaderQueue: "bills", message.HeaderExchange: "e", message.HeaderRoutingKey: "k"}
	ways := []settle.Arrival{{Key: "orders"}, {Exchange: "retries", Key: "orders"}, {Exchange: "rsctl.v1.deliver"}}
	tests := []struct {
		name          string
		arrivals      []settle.Arrival
		exchange, key string
		headers       amqp.Table
		believed      bool
	}{
		{"the default exchange", nil, "", "orders", copied, true},
		{"the default exchange, of a queue with other ways, too", ways, "", "orders", copied, true},
		{"a dead letter that was put back", nil, "", "orders", buried, true},
		{"a forwarded copy of another queue", nil, "", "orders", foreign, false},
		{"the exchange of the retries", ways, "retries", "orders", copied, true},
		{"the exchange of the retries with a key of a publisher", ways, "retries", "order.new", copied, false},
		{"the ladder, whatever the key", ways, "rsctl.v1.deliver", "0.1.orders", copied, true},
		{"an exchange of a publisher", ways, "events", "orders", copied, false},
		{"an exchange of a publisher, as a dead letter", ways, "events", "orders", buried, false},
		{"the ladder of a queue that has none", nil, "rsctl.v1.deliver", "0.1.orders", copied, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := message.Reader{Queue: "orders", Type: settle.Classic, Arrivals: tt.arrivals}
			r := in.Read(&amqp.Delivery{Exchange: tt.exchange, RoutingKey: tt.key, Headers: tt.headers})
			if believed := r.Exchange == "e" && r.RoutingKey == "k"; believed != tt.believed {
				t.Errorf("from %q with key %q, believed %t, want %t", r.Exchange, r.RoutingKey, believed, tt.believed)
			}
		})
	}
}

func TestReadServerCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		typ         settle.Type
		value       any
		redelivered bool
		want        int64
		attempt     int
	}{
		{"a redelivery has been returned", settle.Quorum, int64(2), true, 2, 3},
		{"any integer type will do", settle.Quorum, uint8(2), true, 2, 3},
		{"a first delivery cannot have been returned", settle.Quorum, int64(7), false, 0, 1},
		{"3.10 shows a zero on the first delivery", settle.Quorum, int64(0), false, 0, 1},
		{"a negative count is none", settle.Quorum, int64(-7), true, 0, 1},
		{"text is none", settle.Quorum, "7", true, 0, 1},
		{"a classic queue's attempts come from copies alone", settle.Classic, int64(2), true, 2, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &amqp.Delivery{Redelivered: tt.redelivered, Headers: amqp.Table{"x-delivery-count": tt.value}}
			got := message.Read("orders", tt.typ, d)
			if got.DeliveryCount != tt.want || got.Attempt != tt.attempt {
				t.Errorf("DeliveryCount, Attempt = %d, %d, want %d, %d", got.DeliveryCount, got.Attempt, tt.want, tt.attempt)
			}
		})
	}
}
