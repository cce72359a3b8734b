package runtime

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// capped declares a queue with its dead-letter queue, as the topology does.
func capped(b *bench, kind settle.Type, attempts int) settle.Policy {
	dead := b.queue(settle.Classic, nil)
	args := amqp.Table{}
	if kind == settle.Quorum {
		args = amqp.Table{
			"x-delivery-limit":          int64(attempts - 1),
			"x-dead-letter-exchange":    "",
			"x-dead-letter-routing-key": dead,
		}
	}
	return settle.Policy{Queue: b.queue(kind, args), Type: kind, MaxAttempts: attempts, DeadLetter: dead}
}

func TestHopelessMessageRunsAsOftenAsItMay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		kind     settle.Type
		attempts int
	}{
		{"once on a classic queue", settle.Classic, 1},
		{"three times on a classic queue", settle.Classic, 3},
		{"once on a quorum queue", settle.Quorum, 1},
		{"three times on a quorum queue", settle.Quorum, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, tt.kind, tt.attempts)
				hook := &recorder{reply: always(hooks.Retry)}
				run := b.start(b.config(Queue{Policy: p, Hook: hook}))
				b.publish(p.Queue, amqp.Publishing{MessageId: "m1", Headers: amqp.Table{"tenant": "a"}, Body: []byte("hello")})

				dead := b.get(p.DeadLetter)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				calls := hook.seen()
				if len(calls) != tt.attempts {
					t.Fatalf("handler ran %d times, want %d", len(calls), tt.attempts)
				}
				for i, m := range calls {
					if m.Attempt != i+1 {
						t.Errorf("run %d was attempt %d", i+1, m.Attempt)
					}
				}
				if dead.MessageId != "m1" || string(dead.Body) != "hello" || dead.Headers["tenant"] != "a" {
					t.Errorf("dead letter is %q %q %v", dead.MessageId, dead.Body, dead.Headers)
				}
				if n := b.ready(p.DeadLetter) + b.ready(p.Queue); n != 0 {
					t.Errorf("%d more messages are left", n)
				}
				if tt.kind == settle.Quorum {
					return // the server dead-letters it and adds no reason of ours
				}
				if dead.Headers["x-rsctl-attempts"] != int64(tt.attempts) || dead.Headers["x-rsctl-error"] != "as told" {
					t.Errorf("dead letter's headers are %v", dead.Headers)
				}
			})
		})
	}
}
