package runtime

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// A delivery that is held when the drain is over is retried early: nobody else
// would be given it before.
func TestHeldDeliveryIsRetriedEarlyByAStop(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, kind, 3)
				p.Delay = &settle.Delay{Strategy: "hold", Mode: settle.ModeHold}
				b.publish(p.Queue, amqp.Publishing{MessageId: "later"})
				hook := &recorder{reply: func(hooks.Message) hooks.Outcome {
					return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Hour}
				}}
				cfg := b.config(Queue{Policy: p, Hook: hook})
				cfg.ShutdownTimeout = 100 * time.Millisecond
				run, j := b.observed(cfg)
				b.eventually("the handler to have answered, and a connection for copies", func() bool {
					return b.log.has("after 1h0m0s") && len(told[Connected](j)) == 2
				})
				if n := b.ready(p.Queue); n != 0 {
					t.Errorf("%d messages are ready although the only one is held", n)
				}
				run.stopShort()
				count, copied := b.get(p.Queue).Headers["x-ruststream-retry-count"]
				if copied != (kind == settle.Classic) || copied && count != "1" {
					t.Errorf("came back with the count %v (%v); a copy is counted, a requeue is not ours", count, copied)
				}
			})
		})
	}
}
