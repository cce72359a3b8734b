package runtime

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// An alarm stops what is published for as long as it takes, and nothing else.
func TestBlockedPublishingIsWaitedForWhileOtherQueuesGoOn(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p, other := capped(b, settle.Classic, 3), b.plain()
		hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
			if m.MessageID == "again" && m.Attempt == 1 {
				return hooks.Outcome{Verdict: hooks.Retry}
			}
			return hooks.Outcome{Verdict: hooks.Ack}
		}}
		b.publish(p.Queue, amqp.Publishing{MessageId: "again"})
		for range 5 {
			b.publish(other.Queue, amqp.Publishing{})
		}
		b.memory.Block("low on memory")
		run, j := b.observed(b.config(
			Queue{Policy: p, Hook: hook},
			Queue{Policy: other, Hook: hook, Prefetch: 1}, // each ack brings the next one
		))
		time.Sleep(time.Hour)
		if n := len(hook.seen()); n != 6 {
			t.Errorf("while publishing was blocked %d handlers ran, want each message's once", n)
		}
		if b.log.has("copy not delivered") {
			t.Error("a copy that waits for the end of the alarm counts as failed")
		}
		b.memory.Unblock()
		b.eventually("the retry", func() bool { return len(hook.seen()) == 7 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if n := len(told[Blocked](j)); n != 1 {
			t.Errorf("%d alarms were told, want one", n)
		}
		j.balanced(t)
	})
}
