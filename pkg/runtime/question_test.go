package runtime

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// startImpatient is start for a runtime that waits for an answer as long as it is
// told.
func (b *bench) startImpatient(cfg Config, patience time.Duration) *running {
	b.t.Helper()
	return b.startBy(func(intake, work context.Context) error {
		r := newRunner(cfg)
		r.answerTimeout = patience
		return r.run(intake, work)
	})
}

// mute is a tap that keeps one answer about the queue of a consumer tag away.
func mute(method uint16, tag string, on *atomic.Bool) *tap {
	return &tap{drop: func(_ string, m uint16, rest []byte) bool {
		return on.Load() && m == method && bytes.Contains(rest, []byte(tag))
	}}
}

// A queue whose node is down leaves basic.consume without an answer.
func TestQueueThatDoesNotAnswerKeepsNoOtherQueueAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		silent, other := b.plain(), b.plain()
		hook := &recorder{reply: always(hooks.Ack)}
		cfg := b.config(
			Queue{Policy: silent, Hook: hook, Consumer: Consumer{Tag: "mute"}},
			Queue{Policy: other, Hook: hook},
		)
		j := &journal{}
		cfg.Observer = j
		var muted atomic.Bool
		muted.Store(true)
		b.publish(silent.Queue, amqp.Publishing{MessageId: "kept"})
		cfg = mute(methodConsumeOK, "mute-", &muted).through(b, cfg)
		dial, shared := cfg.Dial, make(chan *amqp.Connection, 1)
		cfg.Dial = func(ctx context.Context, purpose string) (*amqp.Connection, error) {
			conn, err := dial(ctx, purpose)
			if purpose == "consume" && err == nil {
				select {
				case shared <- conn: // the first one
				default:
				}
			}
			return conn, err
		}
		run := b.startImpatient(cfg, 100*time.Millisecond)
		b.eventually("several tries", func() bool { return len(failures(j, silent.Queue)) >= 3 })
		b.publish(other.Queue, amqp.Publishing{MessageId: "meanwhile"})
		b.eventually("the other queue to be handled", func() bool { return len(hook.seen()) == 1 })
		if n := b.log.count(`level=ERROR msg="not consuming; subscribing again" queue=` + silent.Queue); n != 1 || !b.log.has("bring them back") {
			t.Errorf("%d errors are logged, want one that says what to do", n)
		}
		for _, err := range failures(j, silent.Queue) {
			if !errors.Is(err, errNoAnswer) {
				t.Errorf("the queue is not consumed because of %v", err)
			}
		}
		muted.Store(false)
		b.eventually("the message of the queue that was silent", func() bool { return len(hook.seen()) == 2 })
		if got := hook.seen(); got[0].MessageID != "meanwhile" || got[1].MessageID != "kept" || !b.log.has("queue answers again") {
			t.Errorf("handled %q and %q, want one message of each queue", got[0].MessageID, got[1].MessageID)
		}
		if lost := told[Disconnected](j); len(lost) != 0 {
			t.Errorf("a connection was given up: %v", lost)
		}
		_ = (<-shared).Close()
		b.publish(silent.Queue, amqp.Publishing{})
		b.publish(other.Queue, amqp.Publishing{})
		b.eventually("both queues to be handled after the loss of the shared connection", func() bool { return len(hook.seen()) == 4 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if b.ready(silent.Queue) != 0 || b.ready(other.Queue) != 0 {
			t.Error("messages are left")
		}
		j.balanced(t)
	})
}

// failures are why a queue was not consumed.
func failures(j *journal, queue string) []error {
	var all []error
	for _, e := range told[NotConsuming](j) {
		if e.Queue == queue && e.Err != nil {
			all = append(all, e.Err)
		}
	}
	return all
}

func TestStopDoesNotWaitForAQueueThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		answer   uint16
		patience time.Duration
	}{
		{"whether it is consumed", methodConsumeOK, time.Hour},
		{"whether it is consumed no more", methodCancelOK, 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := b.plain()
				for _, id := range []string{"runs", "waits"} {
					b.publish(p.Queue, amqp.Publishing{MessageId: id})
				}
				started, release := make(chan struct{}, 2), make(chan struct{})
				hook := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
					started <- struct{}{}
					<-release
					return hooks.Outcome{Verdict: hooks.Ack}, nil
				})
				var muted atomic.Bool
				muted.Store(true)
				run := b.startImpatient(mute(tt.answer, "mute-", &muted).through(b, b.config(
					Queue{Policy: p, Hook: hook, Consumer: Consumer{Tag: "mute"}, Prefetch: 2},
				)), tt.patience)
				left := 2
				if tt.answer == methodCancelOK {
					<-started
					left = 1
				}
				b.eventually("the consumer to hold both", func() bool { return b.ready(p.Queue) == 0 })
				run.drain()
				close(release)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				b.eventually("the messages that no handler has ended to be back", func() bool { return b.ready(p.Queue) == left })
			})
		})
	}
}

func TestARefusedConsumerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errNoAnswer, "does not answer"},
		{&amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - no queue 'q' in vhost '/'"}, "rsctl apply"},
		{&amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - home node 'n' of durable queue 'q' in vhost '/' is down or inaccessible"}, "bring the node"},
		{&amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - failed to perform operation on queue 'q' in vhost '/' due to timeout"}, "bring the node"},
		{&amqp.Error{Code: amqp.AccessRefused}, "missing read permission"},
		{&amqp.Error{Code: amqp.ResourceLocked}, "holds it exclusively"},
		{&amqp.Error{Code: amqp.InternalError}, "consume"},
		{errors.New("closed"), "consume"},
	} {
		if got := consumeError("q", tt.err); !strings.Contains(got.Error(), tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("%v is told as %q, want it to say %q", tt.err, got, tt.want)
		}
	}
}
