package message_test

import (
	"math"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// asType gives a fuzzed value one of the types that headers arrive in.
func asType(kind byte, text string, n int64) any {
	values := []any{
		text, n, int32(n), int16(n), int8(n), uint8(n), uint16(n), uint32(n), []byte(text), nil, true,
		math.Float64frombits(uint64(n)), amqp.Decimal{Scale: uint8(n), Value: int32(n)},
		[]any{text, n}, amqp.Table{text: n}, []any{amqp.Table{"queue": text, "reason": text, "count": n}},
	}
	return values[int(kind)%len(values)]
}

// Whatever headers a producer makes up: reading them ends, counts no more than
// can be counted, and a copy of them reads as the attempt after.
func FuzzReadAndCopy(f *testing.F) {
	for kind := range byte(16) {
		f.Add(kind, "orders", int64(-1))
	}
	f.Add(byte(0), "2147483647", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, kind byte, text string, n int64) {
		value := asType(kind, text, n)
		names := []string{
			message.HeaderCount, message.HeaderQueue, message.HeaderReason, "x-death", "x-first-death-queue",
			"x-delivery-count", "x-delay", "CC", "BCC", "x-rsctl-exchange", "x-rsctl-routing-key", "x-rsctl-expiration",
		}
		all := amqp.Table{}
		for _, name := range names {
			checkReading(t, amqp.Table{name: value})
			all[name] = value
		}
		checkReading(t, all)
	})
}

func checkReading(t *testing.T, h amqp.Table) {
	t.Helper()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		d := &amqp.Delivery{Headers: h, Redelivered: true, RoutingKey: "orders"}
		r := message.Read("orders", kind, d)
		if r.Attempt < 1 || r.Attempt > math.MaxInt32 || r.Counted < 0 || r.DeliveryCount < 0 {
			t.Fatalf("%v reads as %+v", h, r)
		}
		if strings.ContainsAny(r.CountProblem, "\n\r") || len(r.CountProblem) > 300 {
			t.Fatalf("%v: the problem is not one short line: %q", h, r.CountProblem)
		}
		step := toQueue
		step.Count = r.Attempt
		back := message.Read("orders", kind, redelivered(orders.Copy(d, r, step, failure)))
		if back.Counted != min(r.Attempt, math.MaxInt32-1) || back.CountProblem != "" {
			t.Fatalf("%v: a copy of attempt %d reads as %+v", h, r.Attempt, back)
		}
	}
}
