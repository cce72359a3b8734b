package message_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

var (
	toQueue    = settle.Copy{To: settle.Target{Key: "orders", Queue: "orders"}, Purpose: settle.ForRetry, Count: 2}
	toDead     = settle.Copy{To: settle.Target{Key: "orders.dead", Queue: "orders.dead"}, Purpose: settle.ForDeadLetter}
	toWait     = settle.Copy{To: settle.Target{Key: "orders.retry", Queue: "orders.retry", Expiration: 1500*time.Millisecond + 1}, Purpose: settle.ForDelay, Count: 2}
	toExchange = settle.Copy{To: settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: 1500*time.Millisecond + 1}, Purpose: settle.ForDelay, Count: 2}
	toLadder   = settle.Copy{To: settle.Target{Exchange: "rsctl.v1.level-27", Key: "0.1.orders"}, Purpose: settle.ForDelay, Count: 2}
	failedAt   = time.Date(2026, 3, 1, 12, 0, 0, 999, time.FixedZone("", 3600))
	failure    = message.Failure{Reason: "max_attempts", Error: "exit status 1", At: failedAt}
	orders     = message.Copier{Queue: "orders"}
)

func copyOf(d *amqp.Delivery, s settle.Copy) amqp.Publishing {
	return orders.Copy(d, message.Read("orders", settle.Classic, d), s, failure)
}

// redelivered is p as the broker hands it out again.
func redelivered(p amqp.Publishing) *amqp.Delivery {
	return &amqp.Delivery{
		Headers: maps.Clone(p.Headers), ContentType: p.ContentType, ContentEncoding: p.ContentEncoding,
		DeliveryMode: p.DeliveryMode, Priority: p.Priority, CorrelationId: p.CorrelationId, ReplyTo: p.ReplyTo,
		Expiration: p.Expiration, MessageId: p.MessageId, Timestamp: p.Timestamp, Type: p.Type, UserId: p.UserId,
		AppId: p.AppId, RoutingKey: "orders", Body: p.Body,
	}
}

// backFromWaiting is p as it comes back through the waiting queue, which takes
// the expiration away and adds a death history.
func backFromWaiting(p amqp.Publishing) *amqp.Delivery {
	d := redelivered(p)
	d.Expiration = ""
	d.Headers["x-death"] = []any{amqp.Table{"queue": "orders.retry", "reason": "expired", "count": int64(1)}}
	d.Headers["x-first-death-reason"] = "expired"
	return d
}

func wantHeaders(extra amqp.Table) amqp.Table {
	h := oddHeaders()
	maps.Copy(h, amqp.Table{
		message.HeaderQueue: "orders", message.HeaderExchange: "events", message.HeaderRoutingKey: "order.new",
		message.HeaderCC: []any{"audit"}, message.HeaderUserID: "sender",
		message.HeaderDeath: []any{amqp.Table{"queue": "old", "reason": "rejected", "count": int64(2)}},
	})
	maps.Copy(h, extra)
	return h
}

func wantPublishing(expiration string, headers amqp.Table) amqp.Publishing {
	return amqp.Publishing{
		Headers: wantHeaders(headers), ContentType: "application/x-proto", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 7,
		CorrelationId: "c-1", ReplyTo: "amq.rabbitmq.reply-to.g1h2", Expiration: expiration, MessageId: "m-1",
		Timestamp: time.Unix(beyondDates, 0), Type: "order", AppId: "shop", Body: []byte{0x1f, 0x8b, 0},
	}
}

func TestCopyFieldByField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		step settle.Copy
		want amqp.Publishing
	}{
		{"a retry copy keeps all that may travel", toQueue, wantPublishing("60000", amqp.Table{message.HeaderCount: "2"})},
		{
			"a waiting copy expires after the delay, rounded up", toWait,
			wantPublishing("1501", amqp.Table{message.HeaderCount: "2", message.HeaderExpiration: "60000"}),
		},
		{
			"a copy to a delayed exchange carries the delay and its own expiration", toExchange,
			wantPublishing("60000", amqp.Table{message.HeaderCount: "2", "x-delay": int64(1501)}),
		},
		{
			"a copy to the ladder carries no expiration", toLadder,
			wantPublishing("", amqp.Table{message.HeaderCount: "2", message.HeaderExpiration: "60000"}),
		},
		{
			"a dead letter says why and carries no count", toDead,
			wantPublishing("", amqp.Table{
				message.HeaderReason: "max_attempts", message.HeaderError: "exit status 1",
				message.HeaderAttempts: int64(1), message.HeaderFailedAt: "2026-03-01T11:00:00Z",
			}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := fullDelivery()
			got := copyOf(d, tt.step)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Copy() =\n %#v, want\n %#v", got, tt.want)
			}
			if !reflect.DeepEqual(d, fullDelivery()) {
				t.Errorf("Copy() changed the delivery to %#v", d)
			}
			if err := got.Headers.Validate(); err != nil {
				t.Errorf("the copy cannot be published: %v", err)
			}
		})
	}
}

func TestCopyOfABareMessageInventsNothing(t *testing.T) {
	t.Parallel()
	d := &amqp.Delivery{Exchange: "ev", RoutingKey: "a.b"}
	want := amqp.Publishing{Headers: amqp.Table{
		message.HeaderCount: "2", message.HeaderQueue: "orders", message.HeaderExchange: "ev", message.HeaderRoutingKey: "a.b",
	}}
	if got := copyOf(d, toQueue); !reflect.DeepEqual(got, want) {
		t.Errorf("Copy() =\n %#v, want\n %#v", got, want)
	}
	if got := orders.Bare(d); len(got.Headers) != 0 || d.Headers != nil {
		t.Errorf("Bare() has headers %v, the delivery %v, want none", got.Headers, d.Headers)
	}
}

func TestCopyDropsWhatTheBrokerWouldRefuse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		d     amqp.Delivery
		check func(amqp.Publishing) bool
	}{
		{"delivery mode 0 stays", amqp.Delivery{}, func(p amqp.Publishing) bool { return p.DeliveryMode == 0 }},
		{"delivery mode 1 stays", amqp.Delivery{DeliveryMode: 1}, func(p amqp.Publishing) bool { return p.DeliveryMode == 1 }},
		{"delivery mode 3 becomes none", amqp.Delivery{DeliveryMode: 3}, func(p amqp.Publishing) bool { return p.DeliveryMode == 0 }},
		{"the direct reply-to pseudo-queue is dropped", amqp.Delivery{ReplyTo: "amq.rabbitmq.reply-to"}, func(p amqp.Publishing) bool { return p.ReplyTo == "" }},
		{"a reply queue stays", amqp.Delivery{ReplyTo: "answers"}, func(p amqp.Publishing) bool { return p.ReplyTo == "answers" }},
		{"user_id moves to a header", amqp.Delivery{UserId: "u"}, func(p amqp.Publishing) bool { return p.UserId == "" && p.Headers[message.HeaderUserID] == "u" }},
		{
			"an expiration beyond ten years is put aside", amqp.Delivery{Expiration: "315360000001"},
			func(p amqp.Publishing) bool {
				return p.Expiration == "" && p.Headers[message.HeaderExpiration] == "315360000001"
			},
		},
		{
			"a stranger's malformed expiration header is left alone",
			amqp.Delivery{Headers: amqp.Table{message.HeaderExpiration: "1.5"}},
			func(p amqp.Publishing) bool {
				return p.Expiration == "" && p.Headers[message.HeaderExpiration] == "1.5"
			},
		},
		{
			"a stranger's expiration header of another type is left alone",
			amqp.Delivery{Headers: amqp.Table{message.HeaderExpiration: int32(5)}},
			func(p amqp.Publishing) bool {
				return p.Expiration == "" && p.Headers[message.HeaderExpiration] == int32(5)
			},
		},
		{
			"a malformed death history is removed and kept aside", amqp.Delivery{Headers: amqp.Table{"x-death": "broken", "x-first-death-queue": int8(1)}},
			func(p amqp.Publishing) bool {
				return p.Headers["x-death"] == nil && p.Headers["x-first-death-queue"] == nil && p.Headers[message.HeaderDeath] == "broken"
			},
		},
		{
			"a CC of the wrong type is removed and kept aside", amqp.Delivery{Headers: amqp.Table{"CC": "audit"}},
			func(p amqp.Publishing) bool {
				_, has := p.Headers["CC"]
				return !has && p.Headers[message.HeaderCC] == "audit"
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if p := copyOf(&tt.d, toQueue); !tt.check(p) {
				t.Errorf("Copy() = %#v", p)
			}
		})
	}
}

func TestExpirationComesBackAfterWaiting(t *testing.T) {
	t.Parallel()
	d := backFromWaiting(copyOf(&amqp.Delivery{Expiration: "500"}, toWait))
	again := copyOf(d, toWait)
	if again.Expiration != "1501" || again.Headers[message.HeaderExpiration] != "500" {
		t.Errorf("waiting again: expiration %q, aside %v, want 1501 and 500", again.Expiration, again.Headers[message.HeaderExpiration])
	}
	retried := copyOf(backFromWaiting(again), toQueue)
	if _, aside := retried.Headers[message.HeaderExpiration]; retried.Expiration != "500" || aside {
		t.Errorf("plain retry: expiration %q, aside %t, want 500 and not aside", retried.Expiration, aside)
	}
	buried := copyOf(backFromWaiting(again), toDead)
	if _, aside := buried.Headers[message.HeaderExpiration]; buried.Expiration != "" || aside {
		t.Errorf("dead letter: expiration %q, aside %t, want none", buried.Expiration, aside)
	}
}

func TestDeathHistoryFromBeforeTheFirstCopyIsKept(t *testing.T) {
	t.Parallel()
	old := []any{amqp.Table{"queue": "old"}}
	first := copyOf(&amqp.Delivery{Headers: amqp.Table{"x-death": old}}, toWait)
	buried := copyOf(backFromWaiting(first), toDead)
	if got := buried.Headers[message.HeaderDeath]; !reflect.DeepEqual(got, old) {
		t.Errorf("kept %v, want %v", got, old)
	}
	onlyWaited := copyOf(backFromWaiting(copyOf(&amqp.Delivery{}, toWait)), toDead)
	if got := onlyWaited.Headers[message.HeaderDeath]; got == nil {
		t.Error("a message that has only waited has lost its death history")
	}
	if _, has := buried.Headers["x-death"]; has {
		t.Error("the dead letter carries x-death")
	}
}

func TestADeadLetterPutBackStartsAfresh(t *testing.T) {
	t.Parallel()
	d := redelivered(copyOf(fullDelivery(), toQueue))
	dead := redelivered(copyOf(d, toDead))
	if dead.Headers[message.HeaderAttempts] != int64(3) {
		t.Errorf("attempts = %v, want 3", dead.Headers[message.HeaderAttempts])
	}
	r := message.Read("orders", settle.Classic, dead)
	if r.Attempt != 1 || r.Exchange != "events" || r.RoutingKey != "order.new" {
		t.Errorf("Read() = %+v, want attempt 1 from events order.new", r)
	}
	dead.Headers[message.HeaderError] = "stale"
	again := orders.Copy(dead, r, toDead, message.Failure{Reason: "max_attempts", At: failedAt})
	if got, has := again.Headers[message.HeaderError]; has {
		t.Errorf("error of the earlier death is still there: %v", got)
	}
}

func TestOverridesApplyToEveryCopy(t *testing.T) {
	t.Parallel()
	yes, no, three := true, false, uint8(3)
	d := &amqp.Delivery{DeliveryMode: 1, Priority: 9}
	tests := []struct {
		name               string
		persistent         *bool
		priority           *uint8
		step               settle.Copy
		mode, priorityWant uint8
	}{
		{"without overrides the original's stay", nil, nil, toQueue, 1, 9},
		{"persistent makes a retry copy persistent", &yes, nil, toQueue, 2, 9},
		{"not persistent makes it transient", &no, nil, toQueue, 1, 9},
		{"priority replaces the original's", nil, &three, toQueue, 1, 3},
		{"dead letters leave the same way", &yes, &three, toDead, 2, 3},
		{"a waiting copy is as persistent as the rest, with the original's priority", &yes, &three, toWait, 2, 9},
		{"a waiting copy can be transient", &no, nil, toWait, 1, 9},
		{"a waiting copy keeps the original's", nil, nil, toWait, 1, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := message.Copier{Queue: "orders", Persistent: tt.persistent, Priority: tt.priority}
			p := c.Copy(d, message.Reading{Attempt: 1}, tt.step, failure)
			if p.DeliveryMode != tt.mode || p.Priority != tt.priorityWant {
				t.Errorf("mode, priority = %d, %d, want %d, %d", p.DeliveryMode, p.Priority, tt.mode, tt.priorityWant)
			}
		})
	}
}

func TestBareOnlyRemoves(t *testing.T) {
	t.Parallel()
	d := fullDelivery()
	d.Headers[message.HeaderCount], d.Headers[message.HeaderExpiration] = "2", "1"
	got := orders.Bare(d)
	want := wantPublishing("", nil)
	want.Headers = oddHeaders()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Bare() =\n %#v, want\n %#v", got, want)
	}
	if _, kept := d.Headers["CC"]; !kept {
		t.Error("Bare() changed the delivery")
	}
}

func TestErrorHeaderIsOneShortLineOfText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"a plain line stays", "exit status 1", "exit status 1"},
		{"lines are joined", "a\r\n\tb\u2028c\n", "a b c"},
		{"terminal escapes lose their escape", "\x1b[31mred\x00", "[31mred"},
		{"broken UTF-8 is replaced", "a\xff\xfeb", "a\uFFFDb"},
		{"a long text is cut", strings.Repeat("x", 1<<20), strings.Repeat("x", 1024)},
		{"a cut never splits a character", strings.Repeat("é", 600) + "x", strings.Repeat("é", 512)},
		{"a cut before a split character", "x" + strings.Repeat("é", 600), "x" + strings.Repeat("é", 511)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := orders.Copy(&amqp.Delivery{}, message.Reading{Attempt: 1}, toDead, message.Failure{Error: tt.in})
			if got := p.Headers[message.HeaderError]; got != tt.want {
				t.Errorf("error header = %q, want %q", got, tt.want)
			}
		})
	}
}
