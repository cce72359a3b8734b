package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/keyorder"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// The server cannot say why it has moved a message.
func TestADeadLetterOfAQuorumQueueSaysWhy(t *testing.T) {
	t.Parallel()
	delayed := shortly(tablePolicy(settle.Quorum, 3, "dlx_ttl"), 20*time.Millisecond)
	ours := tablePolicy(settle.Quorum, 3, "")
	ours.EndsSpent = true
	once := tablePolicy(settle.Quorum, 1, "")
	once.EndsSpent = true
	for _, tt := range []struct {
		name   string
		policy settle.Policy
	}{
		{"after delayed copies", delayed},
		{"by dead_letter_by: rsctl", ours},
		{"at the first attempt", once},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.exactly(tt.policy)
			b.publish(p.Queue, amqp.Publishing{MessageId: "spent", Body: []byte("body")})
			hook := &recorder{reply: always(hooks.Retry)}
			run := b.start(b.config(Queue{Policy: p, Hook: hook}))
			dead := b.get(p.DeadLetter)
			b.settled(run, hook, p.MaxAttempts)
			h := dead.Headers
			if h[message.HeaderReason] != "max_attempts" || h[message.HeaderError] != "as told" || h[message.HeaderAttempts] != int64(p.MaxAttempts) {
				t.Errorf("the dead letter says %v", h)
			}
			if dead.MessageId != "spent" || string(dead.Body) != "body" {
				t.Errorf("dead-lettered %q with body %q", dead.MessageId, dead.Body)
			}
			if n := b.ready(p.Queue) + b.ready(p.DeadLetter); n != 0 {
				t.Errorf("%d more messages are left", n)
			}
		})
	}
}

func TestADroppedMessageIsToldFromASpentOneOnAQuorumQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.exactly(shortly(tablePolicy(settle.Quorum, 3, "dlx_ttl"), 20*time.Millisecond))
	b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
	hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
		if m.Attempt == 3 {
			return hooks.Outcome{Verdict: hooks.Drop}
		}
		return hooks.Outcome{Verdict: hooks.Retry}
	}}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	dead := b.get(p.DeadLetter)
	b.settled(run, hook, 3)
	if dead.Headers[message.HeaderReason] != nil || dead.Headers["x-first-death-reason"] == nil {
		t.Errorf("the dropped message says %v", dead.Headers)
	}
}

// The slots may be taken for long; on a quorum queue each return meanwhile is an
// attempt.
func TestRememberedAckWaitsForNoSlot(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{0, 2} {
		t.Run(fmt.Sprintf("batches of %d", batch), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, settle.Quorum, 2)
				b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
				hook := &recorder{reply: always(hooks.Ack)}
				b.giveBack(p.Queue)
				c, d := b.received(Queue{Policy: p, Hook: hook, Concurrency: 1, Prefetch: 2, Batch: Batch{Size: batch, Wait: time.Hour}}, nil)
				if !d.Redelivered || !c.lost.Remember(&d.Delivery) {
					t.Fatal("not a redelivery with an ack to remember")
				}
				j := &journal{}
				c.obs = j
				c.slots <- struct{}{} // for ever
				st := lifetimes{t.Context(), t.Context()}
				if batch > 0 {
					r := batchReader{c, st, d.sub, keyorder.NewCollector[*delivery](c.q.Batch.Size, c.q.Batch.Wait)}
					r.collect(c.receive(d.sub, d.Delivery))
				} else {
					c.take(st, c.receive(d.sub, d.Delivery))
				}
				d.sub.end(errChannelClosed)
				if ends := told[Settled](j); len(ends) != 1 || ends[0].Ending != EndedAck || len(hook.seen()) != 0 {
					t.Errorf("it ended with %v after %d runs, want an ack alone", ends, len(hook.seen()))
				}
			})
		})
	}
}

func TestWhatIsHandedBackIsAckedWhenItHasSucceeded(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 2)
		b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
		b.giveBack(p.Queue)
		c, d := b.received(Queue{Policy: p, Concurrency: 1, Prefetch: 1}, nil)
		j := &journal{}
		c.obs = j
		d = c.receive(d.sub, d.Delivery)
		c.lost.Remember(&d.Delivery) // its handler ends while the redelivery waits
		stopped, stop := context.WithCancel(t.Context())
		stop()
		c.conclude(lifetimes{stopped, t.Context()}, d, hooks.Outcome{}, false)
		c.release(d)
		d.sub.end(errChannelClosed)
		if ends := told[Settled](j); len(ends) != 1 || ends[0].Ending != EndedAck {
			t.Errorf("it ended with %v, want an ack", ends)
		}
	})
}

// giveBack makes the next delivery of queue a redelivery.
func (b *bench) giveBack(queue string) {
	b.t.Helper()
	var d amqp.Delivery
	b.eventually("a message to give back", func() bool {
		got, ok, err := b.ch.Get(queue, false)
		if err != nil {
			b.t.Fatal(err)
		}
		d = got
		return ok
	})
	if err := d.Reject(true); err != nil {
		b.t.Fatal(err)
	}
}

// What the log says of a lost ack holds: a message that its returns have spent is
// not delivered again.
func TestTheLogOfALostAckPromisesNothingThatTheServerMayBreak(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, id string
		kind     settle.Type
		want     string
	}{
		{"a capped quorum queue", "m", settle.Quorum, "although it has succeeded"},
		{"a classic queue", "m", settle.Classic, "acked without running its handler"},
		{"without a message_id", "", settle.Classic, "it has no message_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, out := bufferedLog()
			c := newConsumer(Queue{Policy: settle.Policy{Queue: "q", Type: tt.kind, MaxAttempts: 3, DeadLetter: "q.dead"}}, shared{log: log})
			d := unsentDelivery()
			d.MessageId = tt.id
			d.sub.cancel(errChannelClosed)
			c.settlement(lifetimes{}, d, hooks.Outcome{Verdict: hooks.Ack}).finish(settle.Ack{})
			if !out.has(tt.want) {
				t.Errorf("the log does not say %q:\n%s", tt.want, out)
			}
		})
	}
}
