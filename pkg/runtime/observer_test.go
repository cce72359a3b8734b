package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// journal is an observer that keeps everything it is told.
type journal struct {
	mu     sync.Mutex
	events []Event
}

func (j *journal) Observe(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// told returns the events of one kind, in order.
func told[E Event](j *journal) []E {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []E
	for _, e := range j.events {
		if e, ok := e.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

func (j *journal) endings() map[Ending]int {
	out := map[Ending]int{}
	for _, s := range told[Settled](j) {
		out[s.Ending]++
	}
	return out
}

// balanced fails when something that began has not ended.
func (j *journal) balanced(t *testing.T) {
	t.Helper()
	for _, pair := range []struct {
		what         string
		began, ended int
	}{
		{"deliveries", len(told[Received](j)), len(told[Settled](j))},
		{"hooks", len(told[HookStarted](j)), len(told[HookEnded](j))},
		{"copies", len(told[CopyStarted](j)), len(told[CopyEnded](j))},
		{"held copies", len(told[CopyHeld](j)), len(told[CopyReleased](j))},
	} {
		if pair.began != pair.ended {
			t.Errorf("%d %s began and %d ended", pair.began, pair.what, pair.ended)
		}
	}
}

// observed is a run that tells a journal.
func (b *bench) observed(cfg Config) (*running, *journal) {
	b.t.Helper()
	j := &journal{}
	cfg.Observer = j
	return b.start(cfg), j
}

// byBody answers with the outcome that the body names.
func byBody(m hooks.Message) hooks.Outcome {
	switch string(m.Body) {
	case "drop":
		return hooks.Outcome{Verdict: hooks.Drop}
	case "retry":
		return hooks.Outcome{Verdict: hooks.Retry}
	case "fail":
		return hooks.Outcome{}
	}
	return hooks.Outcome{Verdict: hooks.Ack}
}

func TestObserverSeesEveryDeliveryEndOnce(t *testing.T) {
	t.Parallel()
	const attempts = 3
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, kind, attempts)
				for _, body := range []string{"ack", "ack", "drop", "retry", "fail"} {
					b.publish(p.Queue, amqp.Publishing{Body: []byte(body), Timestamp: time.Now()})
				}
				hook := &recorder{reply: byBody}
				run, j := b.observed(b.config(Queue{Policy: p, Hook: hook}))
				b.eventually("both spent messages", func() bool { return b.ready(p.DeadLetter) >= 2 })
				b.eventually("every settlement", func() bool { return len(told[Settled](j)) == 9 })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				j.balanced(t)
				got := j.endings()
				if got[EndedAck] != 2 || got[EndedDrop] != 1 || got[EndedRetry] != 2*attempts || len(got) != 3 {
					t.Errorf("endings %v, want 2 acks, 1 drop and %d retries", got, 2*attempts)
				}
				if n := spentOf(j); n != 2 {
					t.Errorf("%d messages are spent, want 2", n)
				}
				checkAttempts(t, j, attempts)
				checkCopies(t, j, kind, attempts)
			})
		})
	}
}

func spentOf(j *journal) (n int) {
	for _, s := range told[Settled](j) {
		if s.Spent {
			n++
		}
	}
	return n
}

// checkAttempts holds that first attempts have a lag and later ones none.
func checkAttempts(t *testing.T, j *journal, attempts int) {
	t.Helper()
	most := 0
	for _, h := range told[HookStarted](j) {
		most = max(most, h.Attempt)
		if first := h.Attempt == 1; first != (h.Lag > 0) || h.Lag > patience {
			t.Errorf("attempt %d has a lag of %v", h.Attempt, h.Lag)
		}
	}
	if most != attempts {
		t.Errorf("the last attempt is %d, want %d", most, attempts)
	}
}

// checkCopies holds that a classic queue's copies are told by purpose and that a
// quorum queue makes none.
func checkCopies(t *testing.T, j *journal, kind settle.Type, attempts int) {
	t.Helper()
	copies := map[settle.Purpose]int{}
	for _, c := range told[CopyEnded](j) {
		if c.Result != CopyConfirmed {
			t.Errorf("a copy was %s", c.Result)
		}
		copies[c.Purpose]++
	}
	retries, dead := 2*(attempts-1), 2
	if kind == settle.Quorum {
		retries, dead = 0, 0
	}
	if copies[settle.ForRetry] != retries || copies[settle.ForDeadLetter] != dead {
		t.Errorf("copies by purpose %v, want %d retries and %d dead letters", copies, retries, dead)
	}
}

func TestObserverSeesACopyThatIsReturned(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		p.MaxAttempts, p.DeadLetter = 1, b.name() // which nobody declares
		b.publish(p.Queue, amqp.Publishing{Body: []byte("retry")})
		run, j := b.observed(b.config(Queue{Policy: p, Hook: &recorder{reply: byBody}}))
		b.eventually("the copy to come back", func() bool { return len(told[CopyEnded](j)) > 0 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		j.balanced(t)
		if got := told[CopyEnded](j)[0]; got != (CopyEnded{p.Queue, settle.ForDeadLetter, CopyReturned}) {
			t.Errorf("got %+v", got)
		}
		if n := spentOf(j); n != 0 {
			t.Errorf("%d messages are told as spent, although none has left its queue", n)
		}
	})
}

func TestObserverSeesHeldCopies(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.real(shortly(tablePolicy(settle.Classic, 3, "timer"), replayDelay))
		b.publish(p.Queue, amqp.Publishing{})
		hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
			if m.Attempt == 1 {
				return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: replayDelay}
			}
			return hooks.Outcome{Verdict: hooks.Ack}
		}}
		run, j := b.observed(b.config(Queue{Policy: p, Hook: hook}))
		b.eventually("the ack", func() bool { return j.endings()[EndedAck] == 1 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		j.balanced(t)
		if n := len(told[CopyHeld](j)); n != 1 || j.endings()[EndedRetryAfter] != 1 {
			t.Errorf("%d copies were held, endings %v; want one and a retry_after", n, j.endings())
		}
		// What was held in the process goes out as a plain retry when it is due.
		if c := told[CopyEnded](j); len(c) != 1 || c[0] != (CopyEnded{p.Queue, settle.ForRetry, CopyConfirmed}) {
			t.Errorf("copies %v, want one retry", c)
		}
	})
}

func TestObserverSeesAQueuePause(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		b.publish(p.Queue, amqp.Publishing{})
		hook := &brokenHook{}
		run, j := b.observed(b.config(Queue{Policy: p, Hook: hook}))
		b.eventually("the pause and a probe", func() bool { return len(told[Paused](j)) > 1 })
		if n := len(told[Settled](j)); n != 0 {
			t.Errorf("%d deliveries have ended while the queue is paused", n)
		}
		if got := told[Paused](j)[0]; got.Queue != p.Queue || !errors.Is(got.Err, hooks.ErrUnavailable) {
			t.Errorf("got %+v, want the queue and the reason", got)
		}
		hook.mend()
		b.eventually("the ack", func() bool { return j.endings()[EndedAck] == 1 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		j.balanced(t)
		if got := told[Resumed](j); len(got) != 1 || got[0].Queue != p.Queue {
			t.Errorf("got %v, want the queue once", got)
		}
		for i, h := range told[HookEnded](j)[:2] {
			if !errors.Is(h.Err, hooks.ErrUnavailable) {
				t.Errorf("call %d ended with %v, want unavailable", i, h.Err)
			}
		}
	})
}

func TestObserverSeesALostConnection(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		px := newProxy(b)
		p := b.plain()
		b.publish(p.Queue, amqp.Publishing{})
		hook := &stuckHook{started: make(chan struct{}, 2), release: make(chan struct{})}
		run, j := b.observed(px.through(b.config(Queue{Policy: p, Hook: hook})))
		<-hook.started
		b.eventually("both connections", func() bool { return len(told[Connected](j)) == 2 })
		px.cut()
		b.eventually("the queue's end", func() bool { return len(told[NotConsuming](j)) > 0 })
		close(hook.release) // too late to settle
		b.eventually("another consumer", func() bool { return len(told[Consuming](j)) == 2 })
		b.eventually("both connections again", func() bool { return len(told[Connected](j)) == 4 })
		b.eventually("the ack of the redelivery", func() bool { return j.endings()[EndedAck] == 1 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		j.balanced(t)
		if n := j.endings()[EndedLost]; n != 1 {
			t.Errorf("%d deliveries were lost, want 1", n)
		}
		if got := told[NotConsuming](j)[0]; got.Queue != p.Queue || got.Err == nil {
			t.Errorf("got %+v, want the queue and why", got)
		}
		connects := map[string]int{}
		for _, c := range told[Connected](j) {
			connects[c.Purpose]++
		}
		if connects["consume"] != 2 || connects["publish"] != 2 {
			t.Errorf("connected %v, want each twice", connects)
		}
		if got := told[Disconnected](j); len(got) == 0 || got[0].Err == nil {
			t.Errorf("got %v, want the loss with its reason", got)
		}
	})
}

// stuckHook answers once it is released.
type stuckHook struct{ started, release chan struct{} }

func (h *stuckHook) Handle(context.Context, hooks.Message) (hooks.Outcome, error) {
	h.started <- struct{}{}
	<-h.release
	return hooks.Outcome{Verdict: hooks.Ack}, nil
}

func TestObserverSeesADrain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.plain()
		const n = 4 // one runs, the others wait for it
		for i := range n {
			b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		hook := &stuckHook{started: make(chan struct{}, n), release: make(chan struct{})}
		run, j := b.observed(b.config(Queue{Policy: p, Hook: hook, Prefetch: n}))
		<-hook.started
		run.drain()
		b.eventually("the drain", func() bool { return len(told[Draining](j)) == 1 })
		b.eventually("what has not started to go back", func() bool { return b.ready(p.Queue) == n-1 })
		if n := j.endings()[EndedAck]; n != 0 {
			t.Errorf("%d handlers have ended, want the drain told before", n)
		}
		close(hook.release)
		if err := run.wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		j.balanced(t)
		if got := j.endings(); got[EndedAck] != 1 || got[EndedLost] != 0 {
			t.Errorf("endings %v, want the running handler's ack", got)
		}
		if got := told[NotConsuming](j); len(got) != 1 || got[0].Err != nil {
			t.Errorf("got %v, want the queue's end without an error", got)
		}
	})
}
