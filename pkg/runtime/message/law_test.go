package message_test

import (
	"maps"
	"math"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// However often a message is copied, nothing changes but what copies are about,
// and its headers stop growing after the first copy that waited.
func TestUnrelatedHeadersAndPropertiesNeverChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		origin := drawDelivery(t)
		d := origin
		for attempt := range rapid.IntRange(1, 8).Draw(t, "copies") {
			r := message.Read("orders", settle.Classic, d)
			if want := attempt + 1; r.Attempt != want || r.Exchange != "events" || r.RoutingKey != "order.new" {
				t.Fatalf("attempt %d reads %+v", want, r)
			}
			before := len(d.Headers)
			d = drawCopy(t, d, r)
			if attempt > 1 && len(d.Headers) > before+3 { // expiration aside, and what waiting adds
				t.Fatalf("headers grew from %d to %d: %v", before, len(d.Headers), d.Headers)
			}
			sameBut(t, origin, d, "")
		}
		r := message.Read("orders", settle.Classic, d)
		sameBut(t, origin, redelivered(orders.Copy(d, r, toDead, failure)), message.HeaderCount)
	})
}

// drawCopy copies d in one of the two ways and returns what comes back.
func drawCopy(t *rapid.T, d *amqp.Delivery, r message.Reading) *amqp.Delivery {
	step, back := toQueue, redelivered
	if rapid.Bool().Draw(t, "waits") {
		step, back = toWait, backFromWaiting
	}
	step.Count = r.Attempt
	return back(orders.Copy(d, r, step, failure))
}

func drawDelivery(t *rapid.T) *amqp.Delivery {
	text := rapid.StringN(0, 20, 255)
	d := &amqp.Delivery{
		Headers: drawTable(2).Draw(t, "headers"), ContentType: text.Draw(t, "content type"),
		ContentEncoding: text.Draw(t, "encoding"), DeliveryMode: rapid.Uint8Range(0, 2).Draw(t, "mode"),
		Priority: rapid.Uint8().Draw(t, "priority"), CorrelationId: text.Draw(t, "correlation"),
		ReplyTo: text.Draw(t, "reply to"), MessageId: text.Draw(t, "id"), Type: text.Draw(t, "type"),
		Timestamp: time.Unix(rapid.Int64().Draw(t, "timestamp"), 0), AppId: text.Draw(t, "app"),
		Exchange: "events", RoutingKey: "order.new", Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
	}
	if rapid.Bool().Draw(t, "expires") {
		d.Expiration = "60000"
	}
	return d
}

// sameBut fails unless got has all headers and properties of origin. The drawn
// header names are lower-case words, so no rule is about any of them.
func sameBut(t *rapid.T, origin, got *amqp.Delivery, absent string) {
	for k, v := range origin.Headers {
		if w, ok := got.Headers[k]; !ok || !sameValue(v, w) {
			t.Fatalf("header %q: %#v became %#v", k, v, w)
		}
	}
	if _, has := got.Headers[absent]; has {
		t.Fatalf("header %q is there", absent)
	}
	a, b := *origin, *got
	for _, d := range []*amqp.Delivery{&a, &b} {
		d.Headers, d.Expiration, d.Exchange, d.RoutingKey = nil, "", "", ""
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("properties:\n %#v became\n %#v", a, b)
	}
}

// sameValue compares header values; a NaN equals itself here.
func sameValue(a, b any) bool {
	if f, ok := a.(float64); ok && math.IsNaN(f) {
		g, ok := b.(float64)
		return ok && math.IsNaN(g)
	}
	return reflect.DeepEqual(a, b)
}

func TestCopyNeverChangesTheDelivery(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDelivery(t)
		headers := maps.Clone(d.Headers)
		r := message.Read("orders", settle.Classic, d)
		for _, step := range []settle.Copy{toQueue, toWait, toExchange, toLadder, toDead} {
			orders.Copy(d, r, step, failure)
		}
		orders.Bare(d)
		if len(headers) != len(d.Headers) {
			t.Fatalf("headers %v became %v", headers, d.Headers)
		}
	})
}
