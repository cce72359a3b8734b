package runtime

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// However a copy comes back, its handler sees where the message first came from;
// what a publisher writes into the same headers, it does not see.
func TestHandlersSeeTheTrueOriginOnEveryAttempt(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, mode := range modesOf(t) {
			if mode == "timer" && kind == settle.Quorum || mode == "native" && kind == settle.Classic {
				continue
			}
			t.Run(string(kind)+"/"+mode, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				q := specQueue(b.name(), kind, 3, mode)
				p := b.declared(q)
				exchange := q.Name + ".events"
				b.bind(exchange, q.Name, "order.#")
				hook := &recorder{}
				hook.reply = func(hooks.Message) hooks.Outcome {
					if len(hook.seen()) == 1 {
						return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: replayDelay}
					}
					return hooks.Outcome{Verdict: hooks.Ack}
				}
				arrivals := topology.Arrivals(&spec.Spec{Queues: []spec.Queue{*q}}, q)
				run := b.start(b.config(Queue{Policy: p, Hook: hook, Arrivals: arrivals}))
				b.publishTo(exchange, "order.new", amqp.Publishing{MessageId: "m", Headers: amqp.Table{
					"x-rsctl-queue": q.Name, "x-rsctl-exchange": "forged", "x-rsctl-routing-key": "forged",
				}})
				b.eventually("both attempts", func() bool { return len(hook.seen()) >= 2 })
				if err := run.stop(); err != nil {
					t.Error(err)
				}
				for _, call := range hook.seen() {
					if call.Exchange != exchange || call.RoutingKey != "order.new" {
						t.Errorf("attempt %d: exchange %q, routing key %q", call.Attempt, call.Exchange, call.RoutingKey)
					}
				}
			})
		}
	}
}
