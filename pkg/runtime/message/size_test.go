package message_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/runtime/message"
)

func TestHeaderFrameSizeIsTheEncodersSize(t *testing.T) {
	t.Parallel()
	d := fullDelivery()
	full := amqp.Publishing{UserId: "guest", Expiration: "1"}
	tests := []struct {
		name string
		p    amqp.Publishing
	}{
		{"nothing set", amqp.Publishing{}},
		{"an empty table is not sent", amqp.Publishing{Headers: amqp.Table{}}},
		{"every property but headers", amqp.Publishing{
			ContentType: "a", ContentEncoding: "b", DeliveryMode: 1, Priority: 1, CorrelationId: strings.Repeat("c", 255),
			ReplyTo: "r", Expiration: "1", MessageId: "m", Timestamp: time.Unix(0, 0), Type: "t", UserId: "u", AppId: "a",
		}},
		{"every header type", amqp.Publishing{Headers: oddHeaders()}},
		{"a retry copy", noBody(copyOf(d, toQueue))},
		{"a waiting copy", noBody(copyOf(d, toWait))},
		{"a dead letter", noBody(copyOf(d, toDead))},
		{"a large header", amqp.Publishing{Headers: amqp.Table{"h": strings.Repeat("x", 131_020)}}},
		{"user_id and expiration", full},
	}
	w := newWire(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, _ := w.send(tt.p)
			if got := message.HeaderFrameSize(&tt.p); got != want {
				t.Errorf("HeaderFrameSize() = %d, the encoder wrote %d", got, want)
			}
		})
	}
}

func noBody(p amqp.Publishing) amqp.Publishing {
	p.Body = nil
	return p
}

func TestHeaderFrameSizeOfATableThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	p := amqp.Publishing{Headers: amqp.Table{}}
	for i := range 8192 {
		p.Headers[fmt.Sprint(i)] = nil
	}
	if got := message.HeaderFrameSize(&p); got > frameMax {
		t.Errorf("8192 entries: size %d, want one that fits", got)
	}
	newWire(t).send(p) // the client reads it back
	p.Headers["one more"] = nil
	if got := message.HeaderFrameSize(&p); got != math.MaxInt32 {
		t.Errorf("8193 entries: size %d, want more than any frame", got)
	}
}

// drawValue draws a header value of any type that a delivery can bring.
func drawValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 17
		if depth == 0 {
			kinds = 15
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "v")
		case 2:
			return rapid.Int8().Draw(t, "v")
		case 3:
			return rapid.Uint8().Draw(t, "v")
		case 4:
			return rapid.Int16().Draw(t, "v")
		case 5:
			return rapid.Uint16().Draw(t, "v")
		case 6:
			return rapid.Int32().Draw(t, "v")
		case 7:
			return rapid.Uint32().Draw(t, "v")
		case 8:
			return rapid.Int64().Draw(t, "v")
		case 9:
			return rapid.Float32().Draw(t, "v")
		case 10:
			return rapid.Float64().Draw(t, "v")
		case 11:
			return amqp.Decimal{Scale: rapid.Uint8().Draw(t, "scale"), Value: rapid.Int32().Draw(t, "v")}
		case 12:
			return time.Unix(rapid.Int64().Draw(t, "v"), 0)
		case 13:
			return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "v")
		case 14:
			return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "v"))
		case 15:
			return rapid.SliceOfN(drawValue(depth-1), 1, 4).Draw(t, "v")
		default:
			return drawTable(depth-1).Draw(t, "v")
		}
	})
}

func drawTable(depth int) *rapid.Generator[amqp.Table] {
	return rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,8}`), drawValue(depth), 0, 6),
		func(m map[string]any) amqp.Table { return amqp.Table(m) })
}

// What arrives in a delivery can always be published again, and means the same.
func TestWhateverArrivesCanBeSentAgain(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	rapid.Check(t, func(t *rapid.T) {
		p := amqp.Publishing{Headers: drawTable(3).Draw(t, "headers"), Timestamp: time.Unix(rapid.Int64().Draw(t, "timestamp"), 0)}
		size, d := w.send(p)
		if got := message.HeaderFrameSize(&p); got != size {
			t.Fatalf("HeaderFrameSize() = %d, the encoder wrote %d", got, size)
		}
		again := orders.Bare(d)
		_, d2 := w.send(again)
		if !sameMessage(d, d2) {
			t.Fatalf("sent again:\n %#v, want\n %#v", d2, d)
		}
		if !p.Timestamp.IsZero() && d2.Timestamp.Unix() != p.Timestamp.Unix() {
			t.Fatalf("timestamp %d became %d", p.Timestamp.Unix(), d2.Timestamp.Unix())
		}
	})
}

func sameMessage(a, b *amqp.Delivery) bool {
	return len(a.Headers) == len(b.Headers) && (len(a.Headers) == 0 || reflect.DeepEqual(a.Headers, b.Headers)) && a.Timestamp.Equal(b.Timestamp)
}
