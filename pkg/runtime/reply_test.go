package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// answering acks with "re: " and the body.
func answering(m hooks.Message) hooks.Outcome {
	return hooks.Outcome{Verdict: hooks.Ack, Reply: append([]byte("re: "), m.Body...), ReplyType: "text/plain"}
}

// replying is a queue whose hook's replies are published.
func replying(b *bench, h hooks.Hook) Queue {
	return Queue{Policy: b.plain(), Hook: h, Reply: true, ReplyTo: []string{"rt-*"}}
}

func checkReply(t *testing.T, d amqp.Delivery) {
	t.Helper()
	if string(d.Body) != "re: ping" || d.CorrelationId != "c-1" || d.ContentType != "text/plain" {
		t.Errorf("reply %q, correlation id %q, type %q", d.Body, d.CorrelationId, d.ContentType)
	}
}

func TestAReplyGoesToTheRequestsQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := replying(b, &recorder{reply: answering})
	answers := b.queue(settle.Classic, nil)
	b.publish(q.Policy.Queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: answers, CorrelationId: "c-1", DeliveryMode: amqp.Persistent})
	run, j := b.observed(b.config(q))
	d := b.get(answers)
	checkReply(t, d)
	if d.DeliveryMode != amqp.Persistent || len(d.Headers) != 0 {
		t.Errorf("delivery mode %d, headers %v; want those of the request, and none", d.DeliveryMode, d.Headers)
	}
	b.eventually("the ack", func() bool { return j.endings()[EndedAck] == 1 })
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	j.balanced(t)
	if sent := told[CopyEnded](j); len(sent) != 1 || sent[0].Purpose != settle.ForReply || sent[0].Result != CopyConfirmed {
		t.Errorf("published %+v, want one confirmed reply", sent)
	}
}

func TestAReplyGoesToADirectReplyTo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := replying(b, &recorder{reply: answering})
	run := b.start(b.config(q))
	ch := b.channel()
	answers, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = ch.Publish("", q.Policy.Queue, true, false, amqp.Publishing{
		Body: []byte("ping"), ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "c-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-answers:
		checkReply(t, d)
	case <-time.After(patience):
		t.Error("no reply")
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
}

// requestAndLeave sends a request from a channel that is closed before anybody
// can reply to it.
func requestAndLeave(b *bench, queue string) {
	ch := b.channel()
	if _, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil); err != nil {
		b.t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
	dc, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{Body: []byte("ping"), ReplyTo: "amq.rabbitmq.reply-to"})
	if err != nil || !dc.Wait() {
		b.t.Fatalf("publish: %v", err)
	}
	if err := ch.Close(); err != nil {
		b.t.Fatal(err)
	}
}

func TestARequesterThatIsGoneCostsNothingButALine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		silent bool // the server drops the reply and does not tell
		send   func(b *bench, queue string)
	}{
		{"the reply queue has been deleted", false, func(b *bench, queue string) {
			b.publish(queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: "rt-gone-" + queue})
		}},
		{"the channel of a direct reply-to has been closed", true, requestAndLeave},
		{"the reply queue is full", false, func(b *bench, queue string) {
			full := b.queue(settle.Classic, amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
			b.publish(full, amqp.Publishing{})
			b.publish(queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: full})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			hook := &recorder{reply: answering}
			q := replying(b, hook)
			tt.send(b, q.Policy.Queue)
			cfg := b.config(q)
			cfg.Drain = true
			run, j := b.observed(cfg)
			if err := run.wait(); err != nil {
				t.Errorf("Run() = %v", err)
			}
			if n, acks := len(hook.seen()), j.endings()[EndedAck]; n != 1 || acks != 1 {
				t.Errorf("the handler ran %d times, %d acks; want one of each", n, acks)
			}
			if !tt.silent && !b.log.has("reply not delivered: nobody takes it") {
				t.Error("the log does not say that the reply was not delivered")
			}
		})
	}
}

func TestWhatIsNotRepliedTo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		asked   bool
		outcome hooks.Outcome
	}{
		{"a drop", true, hooks.Outcome{Verdict: hooks.Drop, Reply: []byte("x")}},
		{"an ack without a reply", true, hooks.Outcome{Verdict: hooks.Ack}},
		{"an ack with a reply that the spec does not ask for", false, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("x")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			q := replying(b, &recorder{reply: func(hooks.Message) hooks.Outcome { return tt.outcome }})
			q.Reply = tt.asked
			answers := b.queue(settle.Classic, nil)
			b.publish(q.Policy.Queue, amqp.Publishing{ReplyTo: answers})
			cfg := b.config(q)
			cfg.Drain = true
			run, j := b.observed(cfg)
			if err := run.wait(); err != nil {
				t.Errorf("Run() = %v", err)
			}
			if n := len(told[CopyStarted](j)); n != 0 || b.ready(answers) != 0 {
				t.Errorf("%d replies were published", n)
			}
			if n := len(told[Settled](j)); n != 1 {
				t.Errorf("%d settlements, want 1", n)
			}
		})
	}
}

func TestARequestWhoseReplyCannotBeConfirmedComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hook := &recorder{reply: answering}
	q := replying(b, hook)
	answers := b.queue(settle.Classic, nil)
	b.publish(q.Policy.Queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: answers, CorrelationId: "c-1", MessageId: "m-1"})
	cfg := b.config(q)
	cfg.ConfirmTimeout = time.Second // without a connection it goes by, with one it is enough
	var open atomic.Bool
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, purpose string) (*amqp.Connection, error) {
		if purpose == "reply" && !open.Load() {
			return nil, errors.New("not yet")
		}
		return dial(ctx, purpose)
	}
	run, j := b.observed(cfg)
	b.eventually("a second run of the handler", func() bool { return len(hook.seen()) >= 2 })
	if !b.log.has("reply not confirmed; the request goes back to its queue") || j.endings()[EndedAck] != 0 {
		t.Errorf("endings %v; want no ack without a reply, and a line that says so", j.endings())
	}
	open.Store(true)
	checkReply(t, b.get(answers))
	b.eventually("the ack", func() bool { return j.endings()[EndedAck] == 1 })
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
}
