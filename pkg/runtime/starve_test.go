package runtime

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// What docs/guarantees.md does not promise: RabbitMQ puts a returned message back
// in its place, so what fails without a cap keeps the places of prefetch. With a
// backoff it leaves the queue, and what stood behind it comes at once.
func TestUncappedFailuresKeepTheHeadOfAClassicQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		backoff *settle.Backoff
		good    bool
	}{
		{"a plain retry comes back in front", nil, false},
		{"a backoff takes it away", &settle.Backoff{Initial: 1e9, Factor: 1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				queue := b.queue(settle.Classic, nil)
				for _, id := range []string{"bad 1", "bad 2", "good"} {
					b.publish(queue, amqp.Publishing{MessageId: id})
				}
				hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
					if m.MessageID == "good" {
						return hooks.Outcome{Verdict: hooks.Ack}
					}
					return hooks.Outcome{Verdict: hooks.Retry}
				}}
				b.start(b.config(Queue{Policy: settle.Policy{Queue: queue, Type: settle.Classic, Backoff: tt.backoff}, Hook: hook, Prefetch: 2, Concurrency: 2}))
				good := func() bool {
					for _, c := range hook.seen() {
						if c.MessageID == "good" {
							return true
						}
					}
					return false
				}
				b.eventually("ten runs, or the good message", func() bool { return good() || len(hook.seen()) >= 10 })
				if good() != tt.good {
					t.Errorf("the good message was tried: %t, want %t", good(), tt.good)
				}
			})
		})
	}
}
