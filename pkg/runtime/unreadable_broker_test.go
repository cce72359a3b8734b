package runtime

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/frames"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// screened makes cfg connect as rsctl does, and counts the connections to consume.
func screened(b *bench, cfg Config) (Config, *atomic.Int64) {
	var dials atomic.Int64
	cfg.Dial = func(_ context.Context, purpose string) (*amqp.Connection, error) {
		if purpose == "consume" {
			dials.Add(1)
		}
		return b.connect(amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
			conn, err := b.network(network, addr)
			if err != nil {
				return nil, err
			}
			return frames.Screen(conn), nil
		}})
	}
	return cfg, &dials
}

// poison are headers that the server takes and amqp091-go does not.
func poison() map[string]amqp.Table {
	deep := amqp.Table{}
	for range 40 {
		deep = amqp.Table{"t": deep}
	}
	many := amqp.Table{}
	for i := range 9000 {
		many[fmt.Sprint(i)] = nil
	}
	return map[string]amqp.Table{"deep": deep, "many": many, "long": {"a": make([]any, 9000)}}
}

func TestAMessageThatCannotBeReadHarmsNobody(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, batch := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, batches of %d", kind, batch), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				p, other := capped(b, kind, 3), capped(b, settle.Quorum, 3)
				want := map[string]bool{}
				for id, h := range poison() {
					want[id] = true
					b.publish(p.Queue, amqp.Publishing{MessageId: id, Headers: h, Body: []byte(id)})
					b.publish(p.Queue, amqp.Publishing{MessageId: "good"})
					b.publish(other.Queue, amqp.Publishing{MessageId: "good"})
				}
				q := Queue{Policy: p, DeadLetterRoute: kind == settle.Quorum, Prefetch: 3}
				seen := &recorder{reply: always(hooks.Ack)}
				q.Hook = seen
				if batch > 0 {
					q.Hook = batchFunc(seen.each)
					q.Batch = Batch{Size: batch, Wait: time.Millisecond}
				}
				cfg, dials := screened(b, b.config(q, Queue{Policy: other, Hook: seen}))
				run := b.start(cfg)
				b.eventually("six good messages", func() bool { return len(seen.seen()) >= 6 })
				for len(want) > 0 {
					dead := b.getRaw(t, p.DeadLetter)
					if !want[dead.MessageId] || string(dead.Body) != dead.MessageId {
						t.Errorf("dead-lettered %q with the body %q", dead.MessageId, dead.Body)
					}
					if _, whole := frames.Marked(dead.Headers); whole != (kind == settle.Quorum) {
						t.Errorf("%s: the headers are still there: %v", dead.MessageId, whole)
					}
					if kind == settle.Classic && (dead.Headers[message.HeaderReason] != settle.ReasonUnreadable || dead.Headers[message.HeaderAttempts] != int64(0)) {
						t.Errorf("%s: headers %v", dead.MessageId, dead.Headers)
					}
					delete(want, dead.MessageId)
				}
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				for _, call := range seen.seen() {
					m := call.Message
					if m.MessageID != "good" || m.Redelivered || m.Attempt != 1 {
						t.Errorf("a handler saw %q, attempt %d, redelivered: %v", m.MessageID, m.Attempt, m.Redelivered)
					}
				}
				if n := dials.Load(); n != 1 {
					t.Errorf("%d connections to consume", n)
				}
			})
		}
	}
}

// each handles the messages of a batch one by one.
func (r *recorder) each(ms []hooks.Message) ([]hooks.Outcome, error) {
	out := make([]hooks.Outcome, len(ms))
	for i, m := range ms {
		out[i], _ = r.Handle(context.Background(), m)
	}
	return out, nil
}

// getRaw takes a message whatever its headers are.
func (b *bench) getRaw(t *testing.T, queue string) amqp.Delivery {
	t.Helper()
	cfg, _ := screened(b, Config{})
	conn, err := cfg.Dial(t.Context(), "get")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	var d amqp.Delivery
	b.eventually("a message in "+queue, func() bool {
		got, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatalf("get from %s: %v", queue, err)
		}
		d = got
		return ok
	})
	return d
}

func TestUnreadableMessagesWithNowhereToGoStopNoQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := settle.Policy{Queue: b.queue(settle.Classic, nil), Type: settle.Classic}
	for range 3 {
		b.publish(p.Queue, amqp.Publishing{MessageId: "bad", Headers: poison()["deep"]})
	}
	b.publish(p.Queue, amqp.Publishing{MessageId: "good"})
	seen := &recorder{reply: always(hooks.Ack)}
	cfg, dials := screened(b, b.config(Queue{Policy: p, Hook: seen, Prefetch: 1}))
	run := b.start(cfg)
	b.eventually("the good message", func() bool { return len(seen.seen()) == 1 })
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	b.eventually("three messages to be back", func() bool { return b.ready(p.Queue) == 3 })
	if n := b.log.count("a message cannot be read"); n != 3 || dials.Load() != 1 {
		t.Errorf("told %d times, on %d connections", n, dials.Load())
	}
}

// Cancelling the last consumer of an auto-delete queue deletes the queue.
func TestUnreadableMessagesDoNotCostAQueueThatGoesUnused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := settle.Policy{Queue: fmt.Sprintf("rt-goes-%d", queueSeq.Add(1)), Type: settle.Classic}
	if _, err := b.channel().QueueDeclare(p.Queue, true, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.delete(p.Queue) })
	for range 3 {
		b.publish(p.Queue, amqp.Publishing{MessageId: "bad", Headers: poison()["deep"]})
	}
	b.publish(p.Queue, amqp.Publishing{MessageId: "good"})
	seen := &recorder{reply: always(hooks.Ack)}
	cfg, dials := screened(b, b.config(Queue{Policy: p, Hook: seen, Prefetch: 1, GoesUnused: true}))
	b.start(cfg)
	b.eventually("the good message", func() bool { return len(seen.seen()) == 1 })
	if n := b.log.count("a message cannot be read"); n != 3 || dials.Load() != 1 {
		t.Errorf("told %d times, on %d connections", n, dials.Load())
	}
}

// The server adds its count to a message that just fits into a frame.
func TestAMessageThatGrowsBeyondItsFrameEndsInTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Quorum, 3)
	big := amqp.Publishing{MessageId: "big", Headers: amqp.Table{"h": ""}}
	big.Headers["h"] = strings.Repeat("x", 131_072-message.HeaderFrameSize(&big))
	b.publish(p.Queue, big)
	seen := &recorder{reply: always(hooks.Retry)}
	// With more than one in hand a queue begins by polling before 4.3, and the answer to
	// basic.get has a count from the start.
	cfg, dials := screened(b, b.config(Queue{Policy: p, Hook: seen, Prefetch: 1, DeadLetterRoute: true}))
	run := b.start(cfg)
	if dead := b.getRaw(t, p.DeadLetter); dead.MessageId != "big" {
		t.Errorf("dead-lettered %q", dead.MessageId)
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if n := len(seen.seen()); n != 1 || dials.Load() != 1 {
		t.Errorf("%d attempts, %d connections; want one of each", n, dials.Load())
	}
}
