package runtime

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/settle"
)

// The outcome is known: it is the copy that is tried again, and while it cannot
// arrive no handler runs that could make one more.
func TestACopyThatCannotArrivePausesTheQueueAndRunsNoHandlerAgain(t *testing.T) {
	t.Parallel()
	classic := tablePolicy(settle.Classic, 1, "")
	ours := tablePolicy(settle.Quorum, 1, "")
	ours.EndsSpent = true
	full := amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"}
	tests := []struct {
		name        string
		policy      settle.Policy
		spoil, mend func(b *bench, user, dead string)
	}{
		{
			"missing, classic", classic,
			func(b *bench, _, dead string) { b.delete(dead) },
			func(b *bench, _, dead string) { b.declare(dead, settle.Classic, nil) },
		},
		{
			"missing, quorum", ours,
			func(b *bench, _, dead string) { b.delete(dead) },
			func(b *bench, _, dead string) { b.declare(dead, settle.Classic, nil) },
		},
		{
			"full", classic,
			func(b *bench, _, dead string) {
				b.delete(dead)
				b.declare(dead, settle.Classic, full)
				b.publish(dead, amqp.Publishing{MessageId: "filler"})
			},
			func(b *bench, _, dead string) { b.delete(dead); b.declare(dead, settle.Classic, nil) },
		},
		{
			"forbidden", classic,
			func(b *bench, user, _ string) { b.mayWrite(user, "^$") },
			func(b *bench, user, _ string) { b.mayWrite(user, ".*") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(tt.policy)
			user := "user-" + p.Queue
			login := b.management().newUser(user)
			tt.spoil(b, user, p.DeadLetter)
			const n, prefetch = 6, 2
			for i := range n {
				b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
			}
			hook := &recorder{reply: always(hooks.Retry)}
			cfg := b.config(Queue{Policy: p, Hook: hook, Prefetch: prefetch})
			cfg.Dial = func(context.Context, string) (*amqp.Connection, error) { return amqp.Dial(login) }
			run, j := b.observed(cfg)
			b.eventually("some tries of the copies", func() bool { return len(told[CopyEnded](j)) >= 5 })
			// Until the first copy has failed, others may have taken its slot: what is
			// prefetched, beside the one that a quorum queue begins with.
			if got := len(hook.seen()); got > prefetch+1 {
				t.Errorf("%d handlers ran while the copies could not arrive, want at most %d", got, prefetch+1)
			}
			tt.mend(b, user, p.DeadLetter)
			b.eventually("the dead letters", func() bool { return b.ready(p.DeadLetter) == n })
			b.settled(run, hook, n)
			if stalled, moved := len(told[CopyStalled](j)), len(told[CopyMoved](j)); stalled != moved {
				t.Errorf("%d copies began to wait and %d ended", stalled, moved)
			}
		})
	}
}

func (b *bench) mayWrite(user, pattern string) {
	b.t.Helper()
	b.management().call(http.MethodPut, "permissions/"+url.PathEscape(b.vhost())+"/"+url.PathEscape(user),
		map[string]any{"configure": ".*", "write": pattern, "read": ".*"})
}

func TestDelayedCopyThatCannotArriveRunsNoHandlerAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := b.exactly(shortly(tablePolicy(kind, 2, "dlx_ttl"), 20*time.Millisecond))
				waiting := p.Delay.Route(time.Second).Queue
				b.delete(waiting)
				b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
				hook := &recorder{reply: failing(1)}
				run, j := b.observed(b.config(Queue{Policy: p, Hook: hook}))
				b.eventually("three tries of the copy", func() bool { return len(told[CopyEnded](j)) >= 3 })
				if got := len(hook.seen()); got != 1 {
					t.Errorf("the handler ran %d times while the copy could not arrive, want once", got)
				}
				b.declare(waiting, kind, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": p.Queue})
				if calls := b.settled(run, hook, 2); calls[1].Attempt != 2 {
					t.Errorf("it came back as attempt %d", calls[1].Attempt)
				}
			})
		})
	}
}

// On a quorum queue a return would spend the last attempt, and the server would
// drop the message, whose dead-letter queue is missing.
func TestStopKeepsTheAttemptsOfAMessageWhoseCopyWaits(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := tablePolicy(kind, 1, "")
				p.EndsSpent = kind == settle.Quorum
				p = b.exactly(p)
				b.delete(p.DeadLetter)
				b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
				run, j := b.observed(b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}}))
				b.eventually("the copy to wait", func() bool { return len(told[CopyStalled](j)) == 1 })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				b.eventually("the message in its queue", func() bool { return b.ready(p.Queue) == 1 })
				hook := &recorder{reply: always(hooks.Ack)}
				run = b.start(b.config(Queue{Policy: p, Hook: hook}))
				if calls := b.settled(run, hook, 1); calls[0].Attempt != 1 {
					t.Errorf("the next run was attempt %d, want the same again", calls[0].Attempt)
				}
			})
		})
	}
}

func TestCopyIsNotWaitedForNearTheConsumerTimeout(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := b.exactly(tablePolicy(settle.Classic, 1, ""))
		b.delete(p.DeadLetter)
		b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
		hook := &recorder{reply: always(hooks.Retry)}
		r := newRunner(b.config(Queue{Policy: p, Hook: hook, Concurrency: 1, Prefetch: 2}))
		r.consumers[0].stall.limits = breaker.Limits{Waiting: time.Minute, Probing: time.Minute}
		intake, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.run(intake, context.Background()) }()
		b.eventually("the message to be given back and come again", func() bool {
			return len(hook.seen()) >= 2 && b.log.has("can be kept no longer")
		})
		stop()
		if err := <-done; err != nil {
			t.Errorf("run() = %v", err)
		}
		b.eventually("the message in its queue", func() bool { return b.ready(p.Queue) == 1 })
	})
}

func TestCopyRefusedForWhatItIsEndsOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 3)
		b.publish(p.Queue, amqp.Publishing{MessageId: "odd"})
		refusal := fmt.Errorf("%w: %w", confirm.ErrRefused, &amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - odd"})
		s := &stubSender{answer: func(o *outgoing) error {
			if len(o.Publishing.Headers) == 0 {
				return nil
			}
			return refusal
		}}
		c, d := b.received(Queue{Policy: p, Prefetch: 1}, s)
		c.settlement(lifetimes{t.Context(), t.Context()}, d, hooks.Outcome{Verdict: hooks.Retry}).settle()
		d.sub.end(errChannelClosed)
		if got := s.seen(); len(got) != 2 || b.ready(p.Queue) != 0 || c.stall.on() {
			t.Errorf("tried %q, %d left; want one try, a bare copy and nothing left", got, b.ready(p.Queue))
		}
		if !b.log.has("refused for what the message is") {
			t.Error("the log does not say why")
		}
	})
}
