package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// ways are how a retry may travel on a classic queue with a cap of n.
func ways(n int) map[string]settle.Policy {
	return map[string]settle.Policy{
		"without a delay":         tablePolicy(settle.Classic, n, "none"),
		"through a waiting queue": shortly(tablePolicy(settle.Classic, n, "dlx_ttl"), 50*time.Millisecond),
		"held in the process":     shortly(tablePolicy(settle.Classic, n, "timer"), 50*time.Millisecond),
	}
}

// failing fails the first n attempts.
func failing(n int) func(hooks.Message) hooks.Outcome {
	return func(m hooks.Message) hooks.Outcome {
		if m.Attempt <= n {
			return hooks.Outcome{Verdict: hooks.Retry}
		}
		return hooks.Outcome{Verdict: hooks.Ack}
	}
}

// settled waits until n hook runs are over, drains and returns the runs.
func (b *bench) settled(run *running, hook *recorder, n int) []call {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%d handler runs", n), func() bool { return len(hook.seen()) >= n })
	if err := run.stop(); err != nil {
		b.t.Errorf("Run() = %v", err)
	}
	calls := hook.seen()
	if len(calls) != n {
		b.t.Fatalf("the handler ran %d times, want %d", len(calls), n)
	}
	return calls
}

func TestSenderSelectedRoutingIsNotRepeatedByRetries(t *testing.T) {
	t.Parallel()
	for name, policy := range ways(3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(policy)
			audit := b.queue(settle.Classic, nil)
			b.publish(p.Queue, amqp.Publishing{Headers: amqp.Table{"CC": []any{audit}}})
			run := b.start(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}}))
			dead := b.get(p.DeadLetter)
			if err := run.stop(); err != nil {
				t.Errorf("Run() = %v", err)
			}
			if n := b.ready(audit); n != 1 {
				t.Errorf("the other queue has %d messages, want the original only", n)
			}
			if n := b.ready(p.DeadLetter) + b.ready(p.Queue); n != 0 {
				t.Errorf("%d more messages are left", n)
			}
			if got := dead.Headers["x-rsctl-cc"]; !reflect.DeepEqual(got, []any{audit}) || dead.Headers["CC"] != nil {
				t.Errorf("the dead letter's headers are %v, want CC kept as x-rsctl-cc", dead.Headers)
			}
		})
	}
}

func TestAMessageOfAnotherUserIsRetried(t *testing.T) {
	t.Parallel()
	for name, policy := range ways(5) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(policy)
			sender := p.Queue + "-sender"
			conn, err := amqp.Dial(b.management().newUser(sender))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			(&bench{t: t, conn: conn}).publish(p.Queue, amqp.Publishing{MessageId: "m", UserId: sender})

			hook := &recorder{reply: failing(2)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			calls := b.settled(run, hook, 3)
			if calls[0].UserID != sender {
				t.Errorf("attempt 1 saw user %q", calls[0].UserID)
			}
			for _, c := range calls[1:] {
				if c.UserID != "" || c.Headers["x-rsctl-user-id"] != sender {
					t.Errorf("attempt %d saw user %q, headers %v", c.Attempt, c.UserID, c.Headers)
				}
			}
			if b.log.has("refused by the broker") || b.log.has("no connection") {
				t.Error("the broker refused a copy")
			}
		})
	}
}

func TestAMessagesOwnExpirationDoesNotShortenTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const wait = 700 * time.Millisecond
	p := b.exactly(shortly(tablePolicy(settle.Classic, 5, "dlx_ttl"), wait))
	hook := &recorder{reply: failing(1)}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	b.eventually("the consumer", func() bool { return b.log.has("msg=consuming") }) // else it may expire before
	b.publish(p.Queue, amqp.Publishing{Expiration: "200"})
	calls := b.settled(run, hook, 2)
	if back := calls[1].at.Sub(calls[0].at); back < wait {
		t.Errorf("came back after %v, want %v or more", back, wait)
	}
	if calls[0].Expiration != "200" || calls[1].Expiration != "" || calls[1].Headers["x-rsctl-expiration"] != "200" {
		t.Errorf("expirations were %q and %q, headers %v; want the message back without one, kept aside",
			calls[0].Expiration, calls[1].Expiration, calls[1].Headers)
	}
}

func TestADeadLetterDoesNotExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Classic, 1)
	run := b.start(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}}))
	b.eventually("the consumer", func() bool { return b.log.has("msg=consuming") }) // else it may expire before
	b.publish(p.Queue, amqp.Publishing{MessageId: "m", Expiration: "100"})
	if dead := b.get(p.DeadLetter); dead.Expiration != "" {
		t.Errorf("the dead letter expires after %s ms", dead.Expiration)
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
}

func TestCopiesAreAsPersistentAsTheirOriginals(t *testing.T) {
	t.Parallel()
	for mode, name := range map[uint8]string{amqp.Persistent: "persistent", amqp.Transient: "transient", 0: "not set"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(shortly(tablePolicy(settle.Classic, 2, "dlx_ttl"), time.Hour))
			waiting := p.Delay.Route(time.Hour).Queue
			run := b.start(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}}))
			b.publish(p.Queue, amqp.Publishing{DeliveryMode: mode})
			if d := b.get(waiting); d.DeliveryMode != mode {
				t.Errorf("the waiting copy has delivery mode %d, want %d", d.DeliveryMode, mode)
			}
			spent := amqp.Table{"x-ruststream-retry-count": "1"}
			b.publish(p.Queue, amqp.Publishing{DeliveryMode: mode, Headers: spent})
			if d := b.get(p.DeadLetter); d.DeliveryMode != mode {
				t.Errorf("the dead letter has delivery mode %d, want %d", d.DeliveryMode, mode)
			}
			if err := run.stop(); err != nil {
				t.Errorf("Run() = %v", err)
			}
		})
	}
}

// unchanging is what a hook must see alike on every attempt.
func unchanging(m hooks.Message) hooks.Message {
	m.Attempt, m.Redelivered = 0, false
	m.Headers = maps.Clone(m.Headers)
	maps.DeleteFunc(m.Headers, func(k string, _ any) bool {
		// The broker writes x-death and the like where a message has waited.
		return strings.HasPrefix(k, "x-")
	})
	return m
}

func TestEveryPropertySurvivesRetriesAndTheDeadLetter(t *testing.T) {
	t.Parallel()
	full := amqp.Publishing{
		ContentType: "application/x-proto", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: 7,
		CorrelationId: strings.Repeat("c", 255), ReplyTo: "answers", MessageId: "m-1", Timestamp: time.Unix(1_700_000_000, 0),
		Type: "order.created", AppId: "shop", Headers: amqp.Table{"tenant": "a"}, Body: []byte{0x1f, 0x8b, 0, 0xff},
	}
	for name, msg := range map[string]amqp.Publishing{"a full message": full, "a bare message": {}} {
		for way, policy := range ways(3) {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				p := b.exactly(policy)
				exchange := p.Queue + "-events"
				b.bind(exchange, p.Queue, "a.*")
				b.publishTo(exchange, "a.b", msg)
				hook := &recorder{reply: always(hooks.Retry)}
				run := b.start(b.config(Queue{Policy: p, Hook: hook}))
				dead := b.get(p.DeadLetter)
				calls := b.settled(run, hook, 3)

				want := asSeen(p, exchange, "a.b", msg)
				for _, c := range calls {
					if got := unchanging(c.Message); !reflect.DeepEqual(got, want) {
						t.Errorf("attempt %d saw\n %+v, want\n %+v", c.Attempt, got, want)
					}
				}
				if got := asPublished(dead); !reflect.DeepEqual(got, msg) {
					t.Errorf("the dead letter is\n %+v, want\n %+v", got, msg)
				}
				if dead.Headers["x-rsctl-exchange"] != exchange || dead.Headers["x-rsctl-routing-key"] != "a.b" {
					t.Errorf("the dead letter does not say where it came from: %v", dead.Headers)
				}
			})
		}
	}
}

// bind declares a topic exchange, deleted after the test, and binds queue to it.
func (b *bench) bind(exchange, queue, key string) {
	b.t.Helper()
	if err := b.ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if conn, err := b.connect(amqp.Config{}); err == nil {
			defer conn.Close()
			if ch, err := conn.Channel(); err == nil {
				_ = ch.ExchangeDelete(exchange, false, false)
			}
		}
	})
	if err := b.ch.QueueBind(queue, key, exchange, false, nil); err != nil {
		b.t.Fatal(err)
	}
}

// asSeen is msg as a hook must see it.
func asSeen(p settle.Policy, exchange, key string, msg amqp.Publishing) hooks.Message {
	m := hooks.Message{
		Queue: p.Queue, Exchange: exchange, RoutingKey: key, MaxAttempts: p.MaxAttempts,
		MessageID: msg.MessageId, CorrelationID: msg.CorrelationId, ContentType: msg.ContentType,
		ContentEncoding: msg.ContentEncoding, Type: msg.Type, AppID: msg.AppId, ReplyTo: msg.ReplyTo,
		Priority: msg.Priority, DeliveryMode: msg.DeliveryMode, Headers: map[string]any{}, Body: []byte{},
	}
	if !msg.Timestamp.IsZero() {
		m.Timestamp = msg.Timestamp.Unix()
	}
	maps.Copy(m.Headers, msg.Headers)
	m.Body = append(m.Body, msg.Body...)
	return m
}

// asPublished is what a producer would have to publish for d, our headers and
// the broker's aside.
func asPublished(d amqp.Delivery) amqp.Publishing {
	p := amqp.Publishing{
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp,
		Type: d.Type, AppId: d.AppId, UserId: d.UserId, Expiration: d.Expiration,
	}
	for k, v := range d.Headers {
		if !strings.HasPrefix(k, "x-") {
			if p.Headers == nil {
				p.Headers = amqp.Table{}
			}
			p.Headers[k] = v
		}
	}
	if len(d.Body) > 0 {
		p.Body = d.Body
	}
	return p
}

func TestTheCountIsReadInWhateverTypeItComes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Classic, 4)
	counts := []any{"2", int8(2), uint8(2), int16(2), int32(2), int64(2)}
	for _, n := range counts {
		b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprintf("%T", n), Headers: amqp.Table{"x-ruststream-retry-count": n}})
	}
	hook := &recorder{reply: always(hooks.Retry)}
	run := b.start(b.config(Queue{Policy: p, Hook: hook, Prefetch: 1}))
	calls := b.settled(run, hook, 2*len(counts))
	attempts := map[string][]int{}
	for _, c := range calls {
		attempts[c.MessageID] = append(attempts[c.MessageID], c.Attempt)
		if form := c.Headers["x-ruststream-retry-count"]; c.Attempt == 4 && form != "3" {
			t.Errorf("the copy of %s counts with %#v, want decimal text", c.MessageID, form)
		}
	}
	for _, n := range counts {
		if got := attempts[fmt.Sprintf("%T", n)]; !reflect.DeepEqual(got, []int{3, 4}) {
			t.Errorf("a count of type %T ran as attempts %v, want 3 and 4", n, got)
		}
	}
	if n := b.ready(p.DeadLetter); n != len(counts) {
		t.Errorf("%d messages are dead-lettered, want %d", n, len(counts))
	}
}

func TestHeadersKeepTheirTypesOnTheWire(t *testing.T) {
	t.Parallel()
	headers := amqp.Table{
		"nil": nil, "bool": true, "int8": int8(-3), "uint8": uint8(200), "int16": int16(-300), "int32": int32(-70_000),
		"int64": int64(1 << 40), "uint16": uint16(60_000), "uint32": uint32(1 << 31), "float32": float32(1.5), "float64": 0.1,
		"decimal": amqp.Decimal{Scale: 2, Value: 12345}, "bytes": []byte{0xff, 0, 1}, "time": time.Unix(1_700_000_000, 0),
		"array": []any{int32(1), "x", nil, amqp.Table{"k": true}},
		"table": amqp.Table{"a": amqp.Table{"b": amqp.Table{"c": "deep"}}},
	}
	for way, policy := range ways(2) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(policy)
			b.publish(p.Queue, amqp.Publishing{Headers: headers})
			hook := &recorder{reply: always(hooks.Retry)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			dead := b.get(p.DeadLetter) // copied twice
			calls := b.settled(run, hook, 2)
			if got := asPublished(dead).Headers; !reflect.DeepEqual(got, headers) {
				t.Errorf("headers came out as\n %#v, want\n %#v", got, headers)
			}
			if first, second := unchanging(calls[0].Message), unchanging(calls[1].Message); !reflect.DeepEqual(first.Headers, second.Headers) {
				t.Errorf("attempt 1 saw\n %#v, attempt 2\n %#v", first.Headers, second.Headers)
			}
		})
	}
}

func TestATimestampInMillisecondsHarmsNothing(t *testing.T) {
	t.Parallel()
	const ms = 1_700_000_000_000 // seconds by AMQP's rule: the year 55840
	for way, policy := range ways(2) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(policy)
			b.publish(p.Queue, amqp.Publishing{Timestamp: time.Unix(ms, 0), Headers: amqp.Table{"sent": time.Unix(ms, 0)}})
			hook := &recorder{reply: failing(1)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			for _, c := range b.settled(run, hook, 2) {
				if c.Timestamp != ms || c.Headers["sent"] != int64(ms) {
					t.Errorf("attempt %d saw timestamp %d and header %v", c.Attempt, c.Timestamp, c.Headers["sent"])
				}
				if _, err := json.Marshal(c.Headers); err != nil {
					t.Errorf("attempt %d: %v", c.Attempt, err)
				}
			}
		})
	}
}

func TestBodiesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	bodies := map[string][]byte{"empty": {}, "one NUL byte": {0}, "every byte": every, "no final newline": []byte("a\nb")}
	for way, policy := range ways(2) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(policy)
			for id, body := range bodies {
				b.publish(p.Queue, amqp.Publishing{MessageId: id, Body: body})
			}
			hook := &recorder{reply: failing(1)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			for _, c := range b.settled(run, hook, 2*len(bodies)) {
				if want := bodies[c.MessageID]; string(c.Body) != string(want) || c.ContentType != "" {
					t.Errorf("%s on attempt %d: body %q of type %q, want %q of none", c.MessageID, c.Attempt, c.Body, c.ContentType, want)
				}
			}
		})
	}
}
