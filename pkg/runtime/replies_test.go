package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/settle"
)

// forged are reply addresses that RabbitMQ 3.10 and 4.0 close the connection
// over (541), 4.3 does not.
var forged = []string{
	"amq.rabbitmq.reply-to.x.y",
	"amq.rabbitmq.reply-to.!!!!.!!",
	"amq.rabbitmq.reply-to.g2EB.AAAAAAAAAAAAAAAAAAAAAA==",
	"amq.rabbitmq.reply-to.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=.AAAAAAAAAAAAAAAAAAAAAA==",
}

// closesOverForged reports whether this server does.
func (b *bench) closesOverForged() bool {
	version, _ := b.conn.Properties["version"].(string)
	return strings.HasPrefix(version, "3.") || strings.HasPrefix(version, "4.0.")
}

// dialled counts connections by their purpose.
type dialled struct {
	mu     sync.Mutex
	counts map[string]int
}

func (d *dialled) count(cfg *Config) {
	d.counts = map[string]int{}
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, purpose string) (*amqp.Connection, error) {
		d.mu.Lock()
		d.counts[purpose]++
		d.mu.Unlock()
		return dial(ctx, purpose)
	}
}

func (d *dialled) of(purpose string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[purpose]
}

func TestAReplyAddressThatIsNotAllowedGetsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hook := &recorder{reply: answering}
	q := replying(b, hook)
	q.ReplyTo = []string{"rpc.*"}
	victim := b.queue(settle.Classic, nil)
	addresses := append([]string{victim, "amq.rabbitmq.reply-to.nonsense"}, forged...)
	for _, a := range addresses {
		b.publish(q.Policy.Queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: a})
	}
	cfg := b.config(q)
	cfg.Drain = true
	var conns dialled
	conns.count(&cfg)
	run, j := b.observed(cfg)
	if err := run.wait(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if n, acks := len(hook.seen()), j.endings()[EndedAck]; n != len(addresses) || acks != len(addresses) {
		t.Errorf("the handler ran %d times, %d acks; want %d of each", n, acks, len(addresses))
	}
	if n := b.ready(victim); n != 0 {
		t.Errorf("%d replies went to a queue that no pattern names", n)
	}
	if n := conns.of("reply"); n != 0 {
		t.Errorf("%d connections for replies, want none", n)
	}
	forbidden := 0
	for _, e := range told[CopyEnded](j) {
		if e.Result == CopyForbidden {
			forbidden++
		}
	}
	if forbidden != len(addresses) || !b.log.has("no reply is sent to this address") {
		t.Errorf("%d replies counted as not allowed, want %d, and a line", forbidden, len(addresses))
	}
	j.balanced(t)
}

func TestAReplyGoesToAQueueThatTheServerHasNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := replying(b, &recorder{reply: answering})
	q.ReplyTo = nil
	answers, err := b.ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.publish(q.Policy.Queue, amqp.Publishing{Body: []byte("ping"), ReplyTo: answers.Name, CorrelationId: "c-1"})
	run := b.start(b.config(q))
	checkReply(t, b.get(answers.Name))
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
}

func TestAReplyThatEndsItsConnectionHarmsNoCopyAndNoOtherReply(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answers := b.queue(settle.Classic, nil)
	cfg := b.config()
	cfg.ConfirmTimeout = patience
	j := &journal{}
	cfg.Observer = j
	var conns dialled
	conns.count(&cfg)
	cfg.Log = b.config().Log
	replies, copies := newReplies(cfg), newCopies(cfg, purposePublish)
	life, end := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { replies.run(life) })
	parts.Go(func() { copies.Run(life) })
	defer parts.Wait()
	defer end()

	const each = 200
	var sending sync.WaitGroup
	var failed atomic.Pointer[error]
	send := func(by sender, purpose settle.Purpose, body string) {
		o := &outgoing{queue: "q", purpose: purpose, Message: confirm.Message{Key: answers, Mandatory: true, Publishing: amqp.Publishing{Body: []byte(body)}}}
		if err := by.publish(life, o); err != nil {
			failed.Store(&err)
		}
	}
	for n := range 4 {
		sending.Go(func() {
			for i := range each {
				send(replies, settle.ForReply, fmt.Sprint("reply ", n, i))
			}
		})
		sending.Go(func() {
			for i := range each {
				send(copies, settle.ForRetry, fmt.Sprint("copy ", n, i))
			}
		})
	}
	for _, address := range forged {
		sending.Go(func() {
			o := &outgoing{queue: "q", purpose: settle.ForReply, Message: confirm.Message{Key: address, Publishing: amqp.Publishing{Body: []byte("x")}}}
			err := replies.publish(life, o)
			if bad := errors.Is(err, errBadAddress); bad != b.closesOverForged() {
				t.Errorf("publishing to %s: %v", address, err)
			}
		})
	}
	sending.Wait()
	if err := failed.Load(); err != nil {
		t.Errorf("an innocent reply or copy failed: %v", *err)
	}
	if n := conns.of("publish"); n != 1 {
		t.Errorf("%d connections for copies, want 1", n)
	}
	for _, e := range told[CopyEnded](j) {
		if e.Purpose == settle.ForRetry && e.Result != CopyConfirmed {
			t.Errorf("a copy ended as %s", e.Result)
		}
	}
	if !b.closesOverForged() {
		return
	}
	before := conns.of("reply")
	for _, address := range forged {
		o := &outgoing{queue: "q", purpose: settle.ForReply, Message: confirm.Message{Key: address, Publishing: amqp.Publishing{Body: []byte("x")}}}
		if err := replies.publish(life, o); !errors.Is(err, errBadAddress) {
			t.Errorf("publishing to %s again: %v", address, err)
		}
	}
	send(replies, settle.ForReply, "the last")
	if n := conns.of("reply"); n != before || failed.Load() != nil {
		t.Errorf("%d connections for replies, then %d: an address was tried again", before, n)
	}
}

func TestADirectReplyThatArrivesIsNotCalledUndelivered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := replying(b, &recorder{reply: answering})
	run, j := b.observed(b.config(q))
	ch := b.channel()
	answers, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = ch.Publish("", q.Policy.Queue, true, false, amqp.Publishing{Body: []byte("ping"), ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "c-1"})
	if err != nil {
		t.Fatal(err)
	}
	checkReply(t, <-answers)
	b.eventually("the ack", func() bool { return j.endings()[EndedAck] == 1 })
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if sent := told[CopyEnded](j); len(sent) != 1 || sent[0].Result != CopyConfirmed || b.log.has("reply not delivered") {
		t.Errorf("published %+v, want one confirmed reply and no warning", sent)
	}
}

func TestTheMemoryOfBadAddressesIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecent(2)
	for _, name := range []string{"a", "b", "c"} {
		r.add(name)
	}
	if r.has("a") || !r.has("b") || !r.has("c") || len(r.names) != 2 {
		t.Errorf("kept %v, want b and c", r.names)
	}
}
