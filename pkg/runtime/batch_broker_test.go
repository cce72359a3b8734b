package runtime

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"

	amqp "github.com/rabbitmq/amqp091-go"
)

// batchRecorder acks, or answers by reply, and keeps the ids of each call.
type batchRecorder struct {
	batchFunc
	mu    sync.Mutex
	calls [][]string
}

func recordBatches(reply batchFunc) *batchRecorder {
	r := &batchRecorder{}
	r.batchFunc = func(ms []hooks.Message) ([]hooks.Outcome, error) {
		var ids []string
		for _, m := range ms {
			ids = append(ids, m.MessageID)
		}
		r.mu.Lock()
		r.calls = append(r.calls, ids)
		r.mu.Unlock()
		return reply(ms)
	}
	return r
}

func (r *batchRecorder) sizes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []int
	for _, ids := range r.calls {
		out = append(out, len(ids))
	}
	return out
}

func (b *bench) numbered(queue string, n int) {
	b.t.Helper()
	for i := range n {
		b.publish(queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
	}
}

func TestBatchIsOneCallAndASettlementForEachMessage(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		b.numbered(q, 96)
		hook := recordBatches(ackAll)
		var tp tap
		cfg := b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Prefetch: 100, Batch: Batch{32, time.Hour}})
		run := b.start(tp.through(b, cfg))
		b.eventually("96 settlements", func() bool { return len(tp.settlements()) >= 96 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.sizes(); !slices.Equal(got, []int{32, 32, 32}) {
			t.Errorf("calls with %v messages, want 32, 32 and 32", got)
		}
		if got := tp.settlements(); !slices.Equal(got, slices.Repeat([]string{"ack"}, 96)) {
			t.Errorf("sent to the broker: %q, want 96 acks", got)
		}
	})
}

func TestBatchThatDoesNotFillRunsAfterItsWait(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		b.numbered(q, 6)
		hook := recordBatches(ackAll)
		cfg := b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Prefetch: 100, Batch: Batch{32, 300 * time.Millisecond}})
		run, j := b.observed(cfg)
		b.eventually("6 acks", func() bool { return j.endings()[EndedAck] == 6 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		hook.mu.Lock()
		defer hook.mu.Unlock()
		// In one call, unless the messages took longer than that to come.
		if got := slices.Concat(hook.calls...); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
			t.Errorf("called with %q, want each message once", got)
		}
	})
}

func TestEachMessageOfABatchIsSettledByItsOwnOutcome(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, kind, 2)
				b.numbered(p.Queue, 6) // the last two fill the batch of what is retried
				hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
					var out []hooks.Outcome
					for _, m := range ms {
						verdict := hooks.Ack
						if m.MessageID == "1" || m.MessageID == "2" && m.Attempt == 1 {
							verdict = hooks.Retry
						}
						out = append(out, hooks.Outcome{Verdict: verdict})
					}
					return out, nil
				})
				// With a single active consumer the first message does not come alone.
				cfg := b.config(Queue{Policy: p, Hook: hook, Prefetch: 8, Batch: Batch{4, time.Hour}, Consumer: Consumer{SingleActive: true}})
				run := b.start(cfg)
				if d := b.get(p.DeadLetter); d.MessageId != "1" {
					t.Errorf("message %s was dead-lettered, want 1", d.MessageId)
				}
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				hook.mu.Lock()
				defer hook.mu.Unlock()
				if first := hook.calls[0]; !slices.Equal(first, []string{"0", "1", "2", "3"}) {
					t.Errorf("the first call has the messages %q", first)
				}
				again := slices.Sorted(slices.Values(slices.Concat(hook.calls[1:]...)))
				if !slices.Equal(again, []string{"1", "2", "4", "5"}) {
					t.Errorf("called again with %q, want 1 and 2, and the others", again)
				}
				if dead, left := b.ready(p.DeadLetter), b.ready(p.Queue); dead != 0 || left != 0 {
					t.Errorf("%d more messages were dead-lettered, %d are left", dead, left)
				}
			})
		})
	}
}

func TestAnswerOfTheWrongLengthRetriesTheWholeBatch(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 2)
		b.numbered(p.Queue, 3)
		hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
			if ms[0].Attempt == 1 {
				return []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Ack}}, nil
			}
			return ackAll(ms)
		})
		cfg := b.config(Queue{Policy: p, Hook: hook, Prefetch: 8, Batch: Batch{3, time.Minute}})
		run := b.start(cfg)
		b.eventually("two calls", func() bool { return len(hook.sizes()) == 2 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.sizes(); !slices.Equal(got, []int{3, 3}) {
			t.Errorf("calls with %v messages, want 3 and 3", got)
		}
		if !b.log.has("malformed answer: 2 outcomes for 3 messages") {
			t.Error("the log does not say what was wrong")
		}
	})
}

func TestDrainRunsABatchThatIsNotFullAtOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		hook := recordBatches(ackAll)
		cfg := b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Prefetch: 8, Batch: Batch{8, time.Hour}})
		var tp counts
		cfg.Observer = &tp
		run := b.start(cfg)
		b.numbered(q, 4)
		// Once the last has come in, the others are in the batch; it may be handed back.
		b.eventually("the messages to be delivered", func() bool { return tp.received.Load() == 4 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		got := hook.sizes()
		if len(got) != 1 || got[0] < 3 {
			t.Fatalf("calls with %v messages, want one with all", got)
		}
		if n := b.ready(q); n != 4-got[0] {
			t.Errorf("%d messages are left after a call with %d of 4", n, got[0])
		}
	})
}

func TestDrainHandsBackABatchThatFindsNoSlot(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		started, finish := make(chan struct{}, 8), make(chan struct{})
		hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
			started <- struct{}{}
			<-finish
			return ackAll(ms)
		})
		b.numbered(q, 5)
		run := b.start(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Prefetch: 8, Batch: Batch{2, time.Hour}}))
		<-started
		b.eventually("all to be delivered", func() bool { return b.ready(q) == 0 })
		run.drain()
		b.eventually("the others to be handed back", func() bool { return b.ready(q) == 3 })
		close(finish)
		if err := run.wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.sizes(); !slices.Equal(got, []int{2}) {
			t.Errorf("calls with %v messages, want one with 2", got)
		}
	})
}

func TestBatchWaitsForAHookThatCannotBeRun(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 2)
		b.numbered(p.Queue, 20)
		var tries, acked atomic.Int64
		hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
			if tries.Add(1) <= 3 {
				return nil, errGone
			}
			for _, m := range ms {
				if m.Attempt != 1 {
					t.Errorf("message %s is on attempt %d", m.MessageID, m.Attempt)
				}
			}
			acked.Add(int64(len(ms)))
			return ackAll(ms)
		})
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: 2, Prefetch: 20, Batch: Batch{5, time.Second}}))
		b.eventually("all messages to be acked", func() bool { return acked.Load() == 20 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if n := b.ready(p.DeadLetter); n != 0 {
			t.Errorf("%d messages were dead-lettered", n)
		}
	})
}

// counts counts the deliveries that have come in.
type counts struct{ received atomic.Int64 }

func (c *counts) Observe(e Event) {
	if _, ok := e.(Received); ok {
		c.received.Add(1)
	}
}

func TestBatchThatOutlivesItsConnectionIsAckedOnItsRedelivery(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		q := b.queue(settle.Classic, nil)
		b.numbered(q, 3)
		started, finish := make(chan struct{}, 8), make(chan struct{})
		hook := recordBatches(func(ms []hooks.Message) ([]hooks.Outcome, error) {
			started <- struct{}{}
			<-finish
			return ackAll(ms)
		})
		cfg := b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Prefetch: 8, Batch: Batch{3, time.Minute}})
		conns := consumeConns(&cfg)
		run := b.start(cfg)
		<-started
		_ = (<-conns).Close()
		b.eventually("another consumer", func() bool { return b.ready(q) == 0 && b.log.count("msg=consuming") == 2 })
		close(finish)
		b.eventually("each message to be acked", func() bool { return b.log.count("acked without running the handler again: it has succeeded") == 3 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if got := hook.sizes(); !slices.Equal(got, []int{3}) {
			t.Errorf("calls with %v messages, want one with 3", got)
		}
		if n := b.ready(q); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}
