package membroker_test

import (
	"reflect"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var kinds = []string{"classic", "quorum"}

var rows = []struct {
	name string
	run  func(p *party)
}{
	{"what a queue takes is confirmed", confirms},
	{"what no queue takes is returned, then confirmed", returns},
	{"a full queue nacks", fullQueue},
	{"a publish to no exchange ends its channel", noExchange},
	{"a missing queue ends the channel", noQueue},
	{"a queue declared otherwise ends the channel", declaredOtherwise},
	{"a settlement without a delivery ends the channel", settledTwice},
	{"an exclusive consumer is alone", exclusiveConsumer},
	{"an exclusive queue belongs to its connection", exclusiveQueue},
	{"prefetch bounds what is in hand", prefetch},
	{"consumers take turns", turns},
	{"a cancelled consumer keeps what it has", cancelled},
	{"basic.get takes one", gets},
	{"what is put back is redelivered and counted", counts},
	{"what is put back comes first", order},
	{"an ack of several ends all before it", multiple},
	{"the delivery limit sends to the dead-letter queue", limit},
	{"a rejected message goes to the dead-letter queue", rejects},
	{"an expired message goes to the dead-letter queue", expires},
	{"a queue over its length drops its head", maxLength},
	{"a deleted queue cancels its consumers", deleted},
	{"an auto-delete queue goes with its last consumer", autoDelete},
	{"exchanges route", routes},
	{"properties and headers arrive as they are", properties},
}

func confirms(p *party) {
	for _, kind := range kinds {
		q := p.queue(kind, nil)
		if !p.send("", q, amqp.Publishing{}) {
			p.Errorf("a %s queue refused a message", kind)
		}
		p.eventuallyReady(q, 1)
	}
}

func returns(p *party) {
	returned := p.ch.NotifyReturn(make(chan amqp.Return, 1))
	p.must(p.ch.Confirm(false))
	name := p.name()
	confirm, err := p.ch.PublishWithDeferredConfirm("", name, true, false, amqp.Publishing{MessageId: "m", Body: []byte("body")})
	p.must(err)
	if !confirm.Wait() {
		p.Error("the message was nacked")
	}
	select {
	case r := <-returned: // it came before the confirm
		if r.ReplyCode != amqp.NoRoute || r.ReplyText != "NO_ROUTE" || r.RoutingKey != name || r.MessageId != "m" || string(r.Body) != "body" {
			p.Errorf("returned %+v", r)
		}
	default:
		p.Error("the message was confirmed and not returned before")
	}
}

func fullQueue(p *party) {
	q := p.queue("classic", amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	p.publish(q, "a")
	p.eventuallyReady(q, 1)
	if p.send("", q, amqp.Publishing{}) {
		p.Error("a full queue took a message")
	}
	p.get(q)
	p.eventuallyReady(q, 0)
	if !p.send("", q, amqp.Publishing{}) {
		p.Error("a queue that has room again took none")
	}
}

func noExchange(p *party) {
	closed := p.ch.NotifyClose(make(chan *amqp.Error, 1))
	p.must(p.ch.Confirm(false))
	confirm, err := p.ch.PublishWithDeferredConfirm("nowhere", "", false, false, amqp.Publishing{})
	p.must(err)
	p.refused(receive(p, closed, "the end of the channel"), amqp.NotFound, "NOT_FOUND - no exchange 'nowhere' in vhost")
	if confirm.Wait() {
		p.Error("the message was confirmed")
	}
}

func noQueue(p *party) {
	const text = "NOT_FOUND - no queue 'missing' in vhost"
	for name, ask := range map[string]func(ch *amqp.Channel) error{
		"consume": func(ch *amqp.Channel) error {
			_, err := ch.Consume("missing", "", false, false, false, false, nil)
			return err
		},
		"get": func(ch *amqp.Channel) error { _, _, err := ch.Get("missing", false); return err },
		"declare": func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive("missing", true, false, false, false, nil)
			return err
		},
	} {
		ch := p.channel(p.conn)
		if p.refused(ask(ch), amqp.NotFound, text); !ch.IsClosed() {
			p.Errorf("%s did not end the channel", name)
		}
	}
}

func declaredOtherwise(p *party) {
	q := p.queue("classic", amqp.Table{"x-max-length": int64(5)})
	declare := func(most any) error {
		_, err := p.channel(p.conn).QueueDeclare(q, true, false, false, false, amqp.Table{"x-queue-type": "classic", "x-max-length": most})
		return err
	}
	p.must(declare(int32(5)))
	p.refused(declare(int64(6)), amqp.PreconditionFailed, "PRECONDITION_FAILED - inequivalent arg")
}

func settledTwice(p *party) {
	q := p.queue("classic", nil)
	p.publish(q, "a", "b")
	ch := p.channel(p.conn)
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	first := p.next(p.consume(ch, q, 5))
	p.must(first.Ack(false))
	p.must(first.Ack(false))
	p.refused(receive(p, closed, "the end of the channel"), amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 1")
	if d := p.get(q); d.MessageId != "b" || !d.Redelivered {
		p.Errorf("the channel left %q, redelivered %v", d.MessageId, d.Redelivered)
	}
}

func exclusiveConsumer(p *party) {
	q := p.queue("classic", nil)
	_, err := p.ch.Consume(q, "", false, true, false, false, nil)
	p.must(err)
	_, err = p.channel(p.conn).Consume(q, "", false, false, false, false, nil)
	p.refused(err, amqp.AccessRefused, "ACCESS_REFUSED - queue '"+q+"' in vhost")
}

func exclusiveQueue(p *party) {
	owner := p.connect()
	q := p.name()
	_, err := p.channel(owner).QueueDeclare(q, false, false, true, false, nil)
	p.must(err)
	_, err = p.channel(p.conn).QueueDeclarePassive(q, false, false, true, false, nil)
	p.refused(err, amqp.ResourceLocked, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '"+q)
	p.must(owner.Close())
	p.eventually("the queue to go", func() bool {
		_, err := p.channel(p.conn).QueueDeclarePassive(q, false, false, true, false, nil)
		ex, is := err.(*amqp.Error)
		return is && ex.Code == amqp.NotFound
	})
}

func prefetch(p *party) {
	for _, kind := range kinds {
		q := p.queue(kind, nil)
		p.publish(q, "a", "b", "c", "d", "e")
		ch := p.channel(p.conn)
		deliveries := p.consume(ch, q, 2)
		in := p.take(deliveries, 2)
		p.eventuallyReady(q, 3)
		p.must(in[1].Ack(false))
		if d := p.next(deliveries); d.MessageId != "c" {
			p.Errorf("after the ack %s came, want c", d.MessageId)
		}
		p.eventuallyReady(q, 2)
	}
}

func turns(p *party) {
	q := p.queue("classic", nil)
	one, other := p.consume(p.channel(p.conn), q, 1), p.consume(p.channel(p.conn), q, 1)
	p.publish(q, "a", "b")
	p.next(one)
	p.next(other)
}

func cancelled(p *party) {
	for _, kind := range kinds {
		q := p.queue(kind, nil)
		p.publish(q, "a", "b", "c")
		ch := p.channel(p.conn)
		deliveries := p.consume(ch, q, 2)
		in := p.take(deliveries, 2)
		p.must(ch.Cancel("tag", false))
		p.must(in[0].Ack(false))
		p.must(in[1].Nack(false, true))
		p.eventuallyReady(q, 2)
		if _, open := <-deliveries; open {
			p.Error("a cancelled consumer got a message")
		}
	}
}

func gets(p *party) {
	for _, kind := range kinds {
		q := p.queue(kind, nil)
		if _, ok, err := p.ch.Get(q, false); ok || err != nil {
			p.Errorf("an empty queue answers %v, %v", ok, err)
		}
		p.publish(q, "a", "b")
		p.eventuallyReady(q, 2)
		d, ok, err := p.ch.Get(q, false)
		if !ok || err != nil || d.MessageId != "a" || d.MessageCount != 1 || d.Redelivered {
			p.Errorf("got %q (%v, %v), %d more, redelivered %v", d.MessageId, ok, err, d.MessageCount, d.Redelivered)
		}
		p.must(d.Ack(false))
	}
}

// limited has a queue redeliver at the front, on every series.
func limited(kind string) amqp.Table {
	if kind == "quorum" {
		return amqp.Table{"x-delivery-limit": int64(5)}
	}
	return nil
}

// counts are what a quorum queue makes of each way to give a delivery back.
func counts(p *party) {
	for _, kind := range kinds {
		for _, way := range []struct {
			name  string
			back  func(d amqp.Delivery, ch *amqp.Channel, conn *amqp.Connection) error
			count bool
		}{
			{"reject", func(d amqp.Delivery, _ *amqp.Channel, _ *amqp.Connection) error { return d.Reject(true) }, true},
			{"nack", func(d amqp.Delivery, _ *amqp.Channel, _ *amqp.Connection) error { return d.Nack(false, true) }, !p.at43},
			{"channel close", func(_ amqp.Delivery, ch *amqp.Channel, _ *amqp.Connection) error { return ch.Close() }, true},
			{"connection close", func(_ amqp.Delivery, _ *amqp.Channel, conn *amqp.Connection) error { return conn.Close() }, true},
		} {
			q := p.queue(kind, limited(kind))
			p.publish(q, "m")
			conn := p.connect()
			ch := p.channel(conn)
			d := p.next(p.consume(ch, q, 1))
			if d.Redelivered || d.Headers["x-delivery-count"] != nil || d.Headers["x-acquired-count"] != nil {
				p.Errorf("%s: the first delivery has redelivered %v, headers %v", kind, d.Redelivered, d.Headers)
			}
			p.must(ch.Cancel("tag", false))
			p.must(way.back(d, ch, conn))
			again := p.channel(p.conn)
			d = p.next(p.consume(again, q, 1))
			var count, acquired any
			if kind == "quorum" {
				if way.count {
					count = int64(1)
				}
				if p.at43 {
					acquired = int64(1)
				}
			}
			if !d.Redelivered || d.Headers["x-delivery-count"] != count || d.Headers["x-acquired-count"] != acquired {
				p.Errorf("%s, %s: redelivered %v, headers %v; want count %v, acquired %v", kind, way.name, d.Redelivered, d.Headers, count, acquired)
			}
		}
	}
}

// order is what comes first after some deliveries went back in an order of their own.
func order(p *party) {
	for kind, want := range map[string]string{"classic": "abcd", "quorum": "bacd"} {
		q := p.queue(kind, limited(kind))
		p.publish(q, "a", "b", "c", "d")
		ch := p.channel(p.conn)
		in := p.take(p.consume(ch, q, 3), 3)
		p.must(ch.Cancel("tag", false))
		p.must(in[1].Nack(false, true))
		p.must(in[0].Nack(false, true))
		p.eventuallyReady(q, 3)
		p.must(ch.Close()) // c
		p.eventuallyReady(q, 4)
		if got := ids(p.take(p.consume(p.channel(p.conn), q, 4), 4)); got != want {
			p.Errorf("%s: they came back as %s, want %s", kind, got, want)
		}
	}
}

func multiple(p *party) {
	q := p.queue("classic", nil)
	p.publish(q, "a", "b", "c")
	ch := p.channel(p.conn)
	in := p.take(p.consume(ch, q, 3), 3)
	p.must(in[1].Ack(true))
	p.must(ch.Close())
	p.eventuallyReady(q, 1)
	if d := p.get(q); d.MessageId != "c" {
		p.Errorf("%s is left, want c", d.MessageId)
	}
}

func limit(p *party) {
	dead := p.queue("classic", nil)
	q := p.queue("quorum", amqp.Table{"x-delivery-limit": int64(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	p.publish(q, "m")
	deliveries := p.consume(p.channel(p.conn), q, 1)
	for range 2 {
		p.must(p.next(deliveries).Reject(true))
	}
	d := p.get(dead)
	if death := p.dead(d); d.MessageId != "m" || death["reason"] != "delivery_limit" || death["queue"] != q || death["count"] != int64(1) {
		p.Errorf("the dead letter is %q, %v", d.MessageId, death)
	}
}

func rejects(p *party) {
	for _, kind := range kinds {
		dead := p.queue("classic", nil)
		q := p.queue(kind, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
		p.publish(q, "m")
		p.must(p.next(p.consume(p.channel(p.conn), q, 1)).Reject(false))
		d := p.get(dead)
		death := p.dead(d)
		if death["reason"] != "rejected" || death["queue"] != q || death["exchange"] != "" || !reflect.DeepEqual(death["routing-keys"], []any{q}) || death["count"] != int64(1) {
			p.Errorf("x-death is %v", death)
		}
		if d.Exchange != "" || d.RoutingKey != dead || d.Headers["x-first-death-reason"] != "rejected" || d.Headers["x-first-death-queue"] != q {
			p.Errorf("the dead letter came by %q %q with %v", d.Exchange, d.RoutingKey, d.Headers)
		}
	}
}

func expires(p *party) {
	dead := p.queue("classic", nil)
	to := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
	own := p.queue("classic", to)
	to["x-message-ttl"] = int64(50)
	all := p.queue("classic", to)
	for _, m := range []struct {
		queue, expiration string
	}{{own, "50"}, {all, ""}} {
		p.send("", m.queue, amqp.Publishing{Expiration: m.expiration})
		d := p.get(dead)
		if death := p.dead(d); death["reason"] != "expired" || death["queue"] != m.queue || d.Expiration != "" {
			p.Errorf("the dead letter has expiration %q, x-death %v", d.Expiration, death)
		}
	}
	p.send("", own, amqp.Publishing{MessageId: "slow", Expiration: "200"})
	p.send("", own, amqp.Publishing{MessageId: "quick", Expiration: "1"})
	if got := p.get(dead).MessageId + " " + p.get(dead).MessageId; got != "slow quick" {
		p.Errorf("they expired as %s; what is not at the head waits", got)
	}
}

func maxLength(p *party) {
	dead := p.queue("classic", nil)
	q := p.queue("classic", amqp.Table{"x-max-length": int64(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	p.publish(q, "a", "b")
	if d := p.get(dead); d.MessageId != "a" || p.dead(d)["reason"] != "maxlen" {
		p.Errorf("%s was dropped for %v", d.MessageId, p.dead(d)["reason"])
	}
	p.eventuallyReady(q, 1)
}

func deleted(p *party) {
	for _, kind := range kinds {
		q := p.queue(kind, nil)
		p.publish(q, "m")
		ch := p.channel(p.conn)
		gone := ch.NotifyCancel(make(chan string, 1))
		deliveries := p.consume(ch, q, 1)
		d := p.next(deliveries)
		_, err := p.ch.QueueDelete(q, false, false, false)
		p.must(err)
		if tag := receive(p, gone, "the cancel"); tag != "tag" {
			p.Errorf("consumer %q was cancelled", tag)
		}
		p.must(d.Ack(false)) // harms nobody
		p.must(ch.Qos(1, 0, false))
	}
}

func autoDelete(p *party) {
	q := p.name()
	_, err := p.ch.QueueDeclare(q, false, true, false, false, amqp.Table{"x-expires": int64(600_000)})
	p.must(err)
	ch := p.channel(p.conn)
	p.consume(ch, q, 1)
	p.must(ch.Cancel("tag", false))
	p.eventually("the queue to go", func() bool {
		_, err := p.channel(p.conn).QueueDeclarePassive(q, false, true, false, false, nil)
		return err != nil
	})
}

func routes(p *party) {
	for _, tt := range []struct{ kind, bound, key string }{
		{"direct", "a.b", "a.b"},
		{"fanout", "", "anything"},
		{"topic", "a.*.#", "a.b.c.d"},
		{"topic", "#.d", "a.b.c.d"},
	} {
		x, q := p.name(), p.queue("classic", nil)
		p.must(p.ch.ExchangeDeclare(x, tt.kind, false, false, false, false, nil))
		p.must(p.ch.QueueBind(q, tt.bound, x, false, nil))
		p.send(x, tt.key, amqp.Publishing{MessageId: "m"})
		if tt.kind != "fanout" {
			p.send(x, "b", amqp.Publishing{MessageId: "not this"})
		}
		d := p.get(q)
		if d.MessageId != "m" || d.Exchange != x || d.RoutingKey != tt.key || p.ready(q) != 0 {
			p.Errorf("%s %q: got %q by %q %q, and %d more", tt.kind, tt.bound, d.MessageId, d.Exchange, d.RoutingKey, p.ready(q))
		}
		p.must(p.ch.ExchangeDelete(x, false, false))
	}
}

func properties(p *party) {
	want := amqp.Publishing{
		Headers: amqp.Table{
			"bool": true, "int8": int8(-1), "byte": byte(2), "int16": int16(-3), "int32": int32(-4), "int64": int64(-5), "float": 1.5,
			"text": "t", "nil": nil, "time": time.Unix(1e9, 0).UTC(), "table": amqp.Table{"k": int64(1)}, "list": []any{"a", int32(1)},
		},
		ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 3, CorrelationId: "c", ReplyTo: "r",
		Expiration: "60000", MessageId: "m", Timestamp: time.Unix(1e9, 0).UTC(), Type: "y", UserId: "guest", AppId: "a",
		Body: slices.Repeat([]byte("body"), 100_000), // of several frames
	}
	q := p.queue("classic", nil)
	p.send("", q, want)
	d := p.get(q)
	d.Timestamp = d.Timestamp.UTC()
	if at, is := d.Headers["time"].(time.Time); is {
		d.Headers["time"] = at.UTC()
	}
	got := amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
	if !reflect.DeepEqual(got, want) {
		got.Body, want.Body = nil, nil
		p.Errorf("got  %+v\nwant %+v", got, want)
	}
}
