package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestSplitKeepsTheOrderAndFillsConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		queues, each int
		want         []int
	}{
		{0, 500, []int{0}},
		{1, 500, []int{1}},
		{500, 500, []int{500}},
		{501, 500, []int{500, 1}},
		{5, 2, []int{2, 2, 1}},
	} {
		var consumers []*consumer
		for i := range tt.queues {
			consumers = append(consumers, newConsumer(Queue{Policy: settle.Policy{Queue: fmt.Sprint(i)}}, shared{log: slog.New(slog.DiscardHandler)}))
		}
		var sizes []int
		n := 0
		for _, part := range split(consumers, tt.each) {
			sizes = append(sizes, len(part))
			for _, c := range part {
				if c.queue != fmt.Sprint(n) {
					t.Errorf("%d queues by %d: %q comes as number %d", tt.queues, tt.each, c.queue, n)
				}
				n++
			}
		}
		if fmt.Sprint(sizes) != fmt.Sprint(tt.want) || n != tt.queues {
			t.Errorf("%d queues by %d are dealt out as %v, want %v", tt.queues, tt.each, sizes, tt.want)
		}
	}
}

// A connection with room for eight channels serves two queues.
func TestMoreQueuesThanAConnectionHasChannelsTakeMoreConnections(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		var policies []settle.Policy
		var queues []Queue
		hook := &recorder{reply: always(hooks.Ack)}
		for range 7 {
			p := b.plain()
			policies = append(policies, p)
			queues = append(queues, Queue{Policy: p, Hook: hook})
		}
		cfg := b.config(queues...)
		j := &journal{}
		cfg.Observer = j
		var prepared atomic.Int64
		cfg.Prepare = func(context.Context, *amqp.Connection) error { prepared.Add(1); return nil }
		px := newProxy(b)
		cfg.Dial = func(context.Context, string) (*amqp.Connection, error) { return px.connect(amqp.Config{ChannelMax: 8}) }
		run := b.start(cfg)
		publishAll := func() {
			for _, p := range policies {
				b.publish(p.Queue, amqp.Publishing{})
			}
		}
		publishAll()
		b.eventually("a message of each queue", func() bool { return len(hook.seen()) == len(policies) })
		if n := openConnections(j); n != 4 {
			t.Errorf("%d connections consume, want 4 of two queues each at most", n)
		}
		px.cut()
		publishAll()
		b.eventually("a message of each queue after the loss of all connections", func() bool { return len(hook.seen()) >= 2*len(policies) })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if prepared.Load() < 2 {
			t.Errorf("prepared %d times, want at the start and after the loss", prepared.Load())
		}
	})
}

// openConnections counts the connections that have been told of, by their first
// queue.
func openConnections(j *journal) int {
	seen := map[string]bool{}
	for _, c := range told[Connected](j) {
		if c.Purpose == "consume" && len(c.Queues) > 0 {
			seen[c.Queues[0]] = true
		}
	}
	return len(seen)
}

func TestDrainSpansSeveralConnections(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		hook := &recorder{reply: always(hooks.Ack)}
		var queues []Queue
		for range 5 {
			p := b.plain()
			b.publish(p.Queue, amqp.Publishing{})
			queues = append(queues, Queue{Policy: p, Hook: hook})
		}
		cfg := b.config(queues...)
		cfg.Drain = true
		cfg.Dial = func(context.Context, string) (*amqp.Connection, error) {
			return b.connect(amqp.Config{ChannelMax: 8})
		}
		if err := b.start(cfg).wait(); err != nil || len(hook.seen()) != 5 {
			t.Errorf("Run() = %v after %d messages, want nil after all 5", err, len(hook.seen()))
		}
	})
}

// declareExclusive is what Queue.Declare does for an exclusive queue.
func declareExclusive(name string) func(context.Context, *amqp.Connection) error {
	return func(_ context.Context, conn *amqp.Connection) error {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		if _, err = ch.QueueDeclare(name, false, false, true, false, nil); err != nil {
			return err
		}
		return ch.Close()
	}
}

func TestExclusiveQueueThatAnotherConnectionHoldsKeepsNoOtherQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		held := fmt.Sprintf("rt-exclusive-%d", queueSeq.Add(1))
		holder, err := b.connect(amqp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close()
		if err := declareExclusive(held)(t.Context(), holder); err != nil {
			t.Fatal(err)
		}
		other := b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := b.config(
			Queue{Policy: settle.Policy{Queue: held, Type: settle.Classic}, Hook: hook, Declare: declareExclusive(held)},
			Queue{Policy: other, Hook: hook},
		)
		errHeld := errors.New("locked by another connection")
		var prepared atomic.Int64
		cfg.HeldUp = func(err error) bool { return errors.Is(err, errHeld) }
		cfg.Prepare = func(context.Context, *amqp.Connection) error {
			if prepared.Add(1) == 1 {
				return errHeld
			}
			return nil
		}
		j := &journal{}
		cfg.Observer = j
		b.publish(other.Queue, amqp.Publishing{MessageId: "meanwhile"})
		b.start(cfg)
		b.eventually("the other queue to be handled from the start", func() bool { return len(hook.seen()) == 1 })
		b.eventually("the held queue to be named", func() bool { return b.log.has("RESOURCE_LOCKED") })
		if b.log.has("no connection to the broker") {
			t.Error("a queue that is held is logged as a lost connection")
		}
		_ = holder.Close()
		b.eventually("the queue to be consumed once it is free", func() bool {
			for _, c := range told[Consuming](j) {
				if c.Queue == held {
					return true
				}
			}
			return false
		})
		b.eventually("another preparation", func() bool { return prepared.Load() == 2 })
		b.publish(held, amqp.Publishing{MessageId: "at last"})
		b.eventually("its message", func() bool { return len(hook.seen()) == 2 })
	})
}
