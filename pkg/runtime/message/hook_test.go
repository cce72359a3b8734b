package message_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/message"
)

func TestForHook(t *testing.T) {
	t.Parallel()
	d := fullDelivery()
	d.Headers = amqp.Table{"n": int32(1)}
	r := message.Reading{Attempt: 2, Exchange: "first", RoutingKey: "key"}
	want := hooks.Message{
		Queue: "orders", Exchange: "first", RoutingKey: "key", Attempt: 2, MaxAttempts: 5, Redelivered: true,
		MessageID: "m-1", CorrelationID: "c-1", ContentType: "application/x-proto", ContentEncoding: "gzip",
		Type: "order", AppID: "shop", UserID: "sender", ReplyTo: "amq.rabbitmq.reply-to.g1h2", Expiration: "60000",
		Timestamp: beyondDates, Priority: 7, DeliveryMode: 2,
		Headers: map[string]any{"n": int64(1)}, Body: d.Body,
	}
	if got := message.ForHook("orders", 5, r, d); !reflect.DeepEqual(got, want) {
		t.Errorf("ForHook() =\n %#v, want\n %#v", got, want)
	}
}

func TestForHookOfABareMessageInventsNothing(t *testing.T) {
	t.Parallel()
	got := message.ForHook("orders", 0, message.Reading{Attempt: 1}, &amqp.Delivery{})
	want := hooks.Message{Queue: "orders", Attempt: 1, Headers: map[string]any{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ForHook() =\n %#v, want\n %#v", got, want)
	}
}

// The user_id property is the broker's word, a header is anybody's.
func TestForHookDoesNotTakeAUserFromAHeader(t *testing.T) {
	t.Parallel()
	d := &amqp.Delivery{Headers: amqp.Table{message.HeaderUserID: "admin"}}
	got := message.ForHook("orders", 0, message.Reading{}, d)
	if got.UserID != "" || got.Headers[message.HeaderUserID] != "admin" {
		t.Errorf("UserID = %q, headers %v, want the header alone", got.UserID, got.Headers)
	}
}

func TestForHookHeaderValues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		in, out any
	}{
		{"nothing stays nothing", nil, nil},
		{"a bool stays", true, true},
		{"every integer becomes an int64", uint8(200), int64(200)},
		{"a uint32 keeps its value", uint32(math.MaxUint32), int64(math.MaxUint32)},
		{"an int64 stays", int64(math.MinInt64), int64(math.MinInt64)},
		{"a float32 becomes a float64", float32(1.5), 1.5},
		{"a float64 stays", math.Pi, math.Pi},
		{"no number becomes its name", math.NaN(), "NaN"},
		{"an infinite float32 becomes its name", float32(math.Inf(-1)), "-Inf"},
		{"a decimal becomes its text", amqp.Decimal{Scale: 2, Value: 12345}, "123.45"},
		{"a small decimal gets zeros", amqp.Decimal{Scale: 3, Value: -5}, "-0.005"},
		{"a decimal without a scale is an integer", amqp.Decimal{Value: -7}, "-7"},
		{"the smallest decimal", amqp.Decimal{Scale: 10, Value: math.MinInt32}, "-0.2147483648"},
		{"a timestamp becomes its raw value", time.Unix(beyondDates, 0), int64(beyondDates)},
		{"the zero timestamp stays a number", time.Unix(0, 0), int64(0)},
		{"text stays", "žluť", "žluť"},
		{"bytes stay", []byte{0xff}, []byte{0xff}},
		{"arrays are converted inside", []any{int8(1), []any{uint16(2)}}, []any{int64(1), []any{int64(2)}}},
		{"tables are converted inside", amqp.Table{"t": amqp.Table{"n": int16(3)}}, map[string]any{"t": map[string]any{"n": int64(3)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &amqp.Delivery{Headers: amqp.Table{"h": tt.in}}
			got := message.ForHook("q", 0, message.Reading{}, d).Headers["h"]
			if !reflect.DeepEqual(got, tt.out) {
				t.Errorf("header %#v became %#v, want %#v", tt.in, got, tt.out)
			}
		})
	}
}

func TestForHookAlwaysFitsIntoJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := &amqp.Delivery{Headers: drawTable(3).Draw(t, "headers"), Timestamp: time.Unix(rapid.Int64().Draw(t, "timestamp"), 0)}
		if _, err := json.Marshal(message.ForHook("q", 0, message.Reading{}, d)); err != nil {
			t.Fatalf("headers %#v: %v", d.Headers, err)
		}
	})
}
