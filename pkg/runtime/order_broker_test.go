package runtime

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// keyedQueue declares a queue with n messages, numbered by their ids, spread
// over keys.
func (b *bench) keyedQueue(kind settle.Type, n, keys int) string {
	b.t.Helper()
	q := b.queue(kind, nil)
	ch := b.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		p := amqp.Publishing{MessageId: strconv.Itoa(i), Headers: amqp.Table{"key": fmt.Sprint("k", i%keys)}}
		confirm, err := ch.PublishWithDeferredConfirm("", q, true, false, p)
		if err != nil {
			b.t.Fatal(err)
		}
		last = confirm
	}
	if !last.Wait() {
		b.t.Fatal("the last message was refused")
	}
	b.eventually("every message to be in the queue", func() bool { return b.ready(q) == n })
	return q
}

// orderHook acks, and notes what breaks the order of a key.
type orderHook struct {
	mu       sync.Mutex
	running  map[string]bool
	last     map[string]int
	seen     int
	problems []string
	retries  map[string]bool // ids that fail once
}

func newOrderHook() *orderHook {
	return &orderHook{running: map[string]bool{}, last: map[string]int{}, retries: map[string]bool{}}
}

func (h *orderHook) Handle(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
	key, _ := m.Headers["key"].(string)
	n, _ := strconv.Atoi(m.MessageID)
	h.enter(key, n, m.Attempt == 1 && !m.Redelivered)
	defer h.leave(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.Attempt == 1 && h.retries[m.MessageID] {
		return hooks.Outcome{Verdict: hooks.Retry, Reason: "as told"}, nil
	}
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func (h *orderHook) enter(key string, n int, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen++
	if h.running[key] {
		h.problems = append(h.problems, fmt.Sprintf("message %d runs beside another of %s", n, key))
	}
	h.running[key] = true
	if last, ok := h.last[key]; first && ok && n < last {
		h.problems = append(h.problems, fmt.Sprintf("message %d of %s comes after %d", n, key, last))
	}
	if first {
		h.last[key] = n
	}
}

func (h *orderHook) leave(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[key] = false
}

func (h *orderHook) verdict(t *testing.T, want int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen != want {
		t.Errorf("the handler ran %d times, want %d", h.seen, want)
	}
	for _, p := range h.problems[:min(len(h.problems), 5)] {
		t.Error(p)
	}
}

func byKey(q string, kind settle.Type, h hooks.Hook) Queue {
	return Queue{
		Policy: settle.Policy{Queue: q, Type: kind, MaxAttempts: 3}, Hook: h,
		Order: Order{OrderByHeader, "key"}, Concurrency: 16, Prefetch: 64,
	}
}

func TestDeliveriesOfOneKeyRunOneAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		const messages, keys = 5000, 100
		q := b.keyedQueue(settle.Classic, messages, keys)
		h := newOrderHook()
		h.retries["1000"], h.retries["1001"] = true, true
		cfg := b.config(byKey(q, settle.Classic, h))
		cfg.Drain = true
		if err := b.start(cfg).wait(); err != nil {
			t.Fatal(err)
		}
		h.verdict(t, messages+2)
		if n := b.ready(q); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

func TestDrainHandsBackWhatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Classic, 10, 1)
		started, finish := make(chan struct{}, 10), make(chan struct{})
		h := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			started <- struct{}{}
			<-finish
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		r := b.start(b.config(byKey(q, settle.Classic, h)))
		<-started
		b.eventually("the others to be delivered", func() bool { return b.ready(q) == 0 })
		r.drain()
		b.eventually("them to be handed back while the first still runs", func() bool { return b.ready(q) == 9 })
		close(finish)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		if n := len(started); n != 0 {
			t.Errorf("%d more handlers were run", n)
		}
		if n := b.ready(q); n != 9 {
			t.Errorf("%d messages are left, want 9", n)
		}
	})
}

// consumeConns makes cfg pass on each connection that it consumes on.
func consumeConns(cfg *Config) <-chan *amqp.Connection {
	conns := make(chan *amqp.Connection, 10)
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, purpose string) (*amqp.Connection, error) {
		conn, err := dial(ctx, purpose)
		if err == nil && purpose == "consume" {
			conns <- conn
		}
		return conn, err
	}
	return conns
}

func TestKeyWaitsForAHookThatALostConnectionHasLeftRunning(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.keyedQueue(settle.Classic, 3, 1)
		started, finish := make(chan string, 10), make(chan struct{})
		h := newOrderHook()
		cfg := b.config(byKey(q, settle.Classic, hooks.Func(func(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
			h.enter("k0", 0, false)
			defer h.leave("k0")
			started <- m.MessageID
			<-finish
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})))
		conns := consumeConns(&cfg)
		r := b.start(cfg)
		if id := <-started; id != "0" {
			t.Errorf("message %s runs first", id)
		}
		_ = (<-conns).Close()
		b.eventually("another connection", func() bool { return len(conns) == 1 })
		b.eventually("the messages to be delivered on it", func() bool { return b.ready(q) == 0 && b.log.count("msg=consuming") == 2 })
		if n := len(started); n != 0 {
			t.Errorf("%d handlers were started beside the one that was left", n)
		}
		close(finish)
		b.eventually("the queue to be empty", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.seen == 3 })
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		h.verdict(t, 3) // the first is acked on its redelivery without another run
		if n := b.ready(q); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}
