package runtime

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/held"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestHeldCopiesOfADeletedQueueDoNotKeepOthersBack(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		gone, other := capped(b, settle.Classic, 9), capped(b, settle.Classic, 9)
		const atATime = held.MaxReleasing
		const n = atATime + 10
		waits := &recorder{reply: func(hooks.Message) hooks.Outcome {
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Second}
		}}
		hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
			if m.Attempt == 1 {
				return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 200 * time.Millisecond}
			}
			return hooks.Outcome{Verdict: hooks.Ack}
		}}
		for i := range n {
			b.publish(gone.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		cfg := b.config(Queue{Policy: gone, Hook: waits, Concurrency: 8, Prefetch: n}, Queue{Policy: other, Hook: hook})
		cfg.ShutdownTimeout = 100 * time.Millisecond
		run := b.start(cfg)
		b.eventually("every copy to be held", func() bool { return len(waits.seen()) == n })
		b.delete(gone.Queue)
		b.eventually("the copies to come due", func() bool { return b.log.count("held copy not delivered") >= atATime })
		b.publish(other.Queue, amqp.Publishing{})
		b.eventually("the other queue's copy, which those would keep back for ever", func() bool { return len(hook.seen()) == 2 })
		b.declare(gone.Queue, settle.Classic, nil) // so that the stop has somewhere to put them
		run.stopShort()
	})
}
