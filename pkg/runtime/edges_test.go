package runtime

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// odd are messages whose copies could do harm: close a channel, be dropped by the
// broker as a cycle, or be counted wrongly.
var odd = map[string]amqp.Table{
	"x-death is text":                   {"x-death": "rejected"},
	"x-death is a list of numbers":      {"x-death": []any{int32(1), int64(2)}},
	"x-death has fields of wrong types": {"x-death": []any{amqp.Table{"queue": int32(1), "reason": true, "count": "many", "time": "now"}}},
	"x-death is a table":                {"x-death": amqp.Table{"queue": "q"}},
	"first death is a number":           {"x-first-death-queue": int64(1), "x-first-death-reason": int64(2)},
	"count is a float":                  {"x-ruststream-retry-count": 1.5},
	"count is negative":                 {"x-ruststream-retry-count": int64(-7)},
	"count is beyond every integer":     {"x-ruststream-retry-count": "99999999999999999999"},
	"count is a table":                  {"x-ruststream-retry-count": amqp.Table{"n": int32(1)}},
	"server counts are a producer's":    {"x-delivery-count": int64(math.MaxInt64), "x-acquired-count": "x"},
	"tables eight levels deep":          {"deep": deep(8)},
	"a thousand headers":                many(1000),
	"a header name of 255 bytes":        {strings.Repeat("n", 255): "x"},
	"x-delay for nobody":                {"x-delay": "soon"},
	"origin of the wrong type":          {"x-rsctl-exchange": int32(1), "x-rsctl-routing-key": nil, "x-rsctl-queue": int64(2)},
	"expiration of the wrong type":      {"x-rsctl-expiration": amqp.Table{}},
}

func deep(levels int) amqp.Table {
	if levels == 0 {
		return amqp.Table{"end": []any{"x", nil, int8(-1)}}
	}
	return amqp.Table{"next": deep(levels - 1)}
}

func many(n int) amqp.Table {
	t := amqp.Table{}
	for i := range n {
		t[fmt.Sprint("h", i)] = int32(i)
	}
	return t
}

func TestOddMessagesAreRetriedAsOftenAsOthersAndHarmNobody(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, mode := range []string{"", "dlx_ttl"} {
			t.Run(fmt.Sprintf("%s queue, delay %q", kind, mode), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				p := b.exactly(tablePolicy(kind, 3, mode))
				for name, headers := range odd {
					b.publish(p.Queue, amqp.Publishing{MessageId: name, Headers: headers, DeliveryMode: amqp.Persistent})
				}
				b.publish(p.Queue, amqp.Publishing{MessageId: "next"})
				hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
					if m.MessageID == "next" {
						return hooks.Outcome{Verdict: hooks.Ack}
					}
					return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 10 * time.Millisecond}
				}}
				run := b.start(b.config(Queue{Policy: p, Hook: hook, Concurrency: 4}))
				b.eventually("every odd message in the dead-letter queue", func() bool { return b.ready(p.DeadLetter) == len(odd) })
				b.eventually("the next message to run", func() bool { return len(hook.seen()) > 3*len(odd) })
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				runs := map[string]int{}
				for _, c := range hook.seen() {
					runs[c.MessageID]++
				}
				for name := range odd {
					if runs[name] != 3 {
						t.Errorf("%s: ran %d times, want 3", name, runs[name])
					}
				}
				if runs["next"] != 1 || b.ready(p.Queue) != 0 {
					t.Errorf("the other message ran %d times, %d are left", runs["next"], b.ready(p.Queue))
				}
				if b.log.has("no connection") || b.log.has("subscribing again") || b.log.has("copy not delivered") {
					t.Error("an odd message has cost a connection, a channel or a copy")
				}
			})
		}
	}
}
