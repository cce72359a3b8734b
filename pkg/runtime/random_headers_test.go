package runtime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// RSCTL_FUZZ_MESSAGES makes the test as long as you like.
func randomMessages(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("RSCTL_FUZZ_MESSAGES"))
	if text := os.Getenv("RSCTL_FUZZ_MESSAGES"); text != "" && err != nil {
		t.Fatal(err)
	}
	return max(n, 200)
}

// Every message with random headers has a hook or ends in the dead-letter queue, and
// no other queue is given anything twice.
func TestNoHeadersCostAnotherQueueADelivery(t *testing.T) {
	t.Parallel()
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p, other := capped(b, kind, 2), capped(b, settle.Quorum, 2)
			failing := &recorder{reply: always(hooks.Retry)}
			good := &recorder{reply: always(hooks.Ack)}
			cfg, dials := screened(b, b.config(Queue{Policy: p, Hook: failing, DeadLetterRoute: kind == settle.Quorum, Concurrency: 4},
				Queue{Policy: other, Hook: good}))
			run := b.start(cfg)
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			n := randomMessages(t)
			for i := range n {
				b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i), Headers: randomTable(rnd, rnd.IntN(5)), Type: "t", AppId: "app"})
				b.publish(other.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
			}
			b.eventually("all in the dead-letter queue", func() bool { return b.ready(p.DeadLetter) == n })
			b.eventually("all good ones", func() bool { return len(good.seen()) >= n })
			if err := run.stop(); err != nil {
				t.Errorf("Run() = %v", err)
			}
			for _, m := range good.seen() {
				if m.Redelivered || m.Attempt != 1 {
					t.Errorf("another queue's message %s: attempt %d, redelivered: %v", m.MessageID, m.Attempt, m.Redelivered)
				}
			}
			if len(good.seen()) != n || dials.Load() != 1 {
				t.Errorf("%d calls for %d messages, on %d connections", len(good.seen()), n, dials.Load())
			}
		})
	}
}

func randomTable(rnd *rand.Rand, breadth int) amqp.Table {
	h := amqp.Table{}
	for i := range breadth {
		h[fmt.Sprintf("%d%s", i, strings.Repeat("n", rnd.IntN(200)))] = randomValue(rnd, 3)
	}
	switch rnd.IntN(12) {
	case 0:
		var v any = "deep"
		for range 25 + rnd.IntN(20) {
			if rnd.IntN(2) == 0 {
				v = []any{v}
			} else {
				v = amqp.Table{"t": v}
			}
		}
		h["deep"] = v
	case 1:
		h["array"] = make([]any, 8180+rnd.IntN(30))
	case 2:
		for i := range 8150 + rnd.IntN(60) {
			h[strconv.Itoa(i)] = nil
		}
	case 3:
		h["large"] = strings.Repeat("x", 125_000+rnd.IntN(5_000))
	}
	return h
}

func randomValue(rnd *rand.Rand, depth int) any {
	switch rnd.IntN(14) {
	case 0:
		return nil
	case 1:
		return rnd.IntN(2) == 0
	case 2:
		return int8(rnd.Int())
	case 3:
		return byte(rnd.Int())
	case 4:
		return int16(rnd.Int())
	case 5:
		return int32(rnd.Int())
	case 6:
		return rnd.Int64() - math.MaxInt64/2
	case 7:
		return rnd.Float32()
	case 8:
		return rnd.NormFloat64()
	case 9:
		return amqp.Decimal{Scale: byte(rnd.Int()), Value: int32(rnd.Int())}
	case 10:
		return time.Unix(rnd.Int64N(1<<40), 0)
	case 11:
		return []byte{byte(rnd.Int()), 0, 0xff}
	case 12:
		if depth > 0 {
			return []any{randomValue(rnd, depth-1), randomValue(rnd, depth-1)}
		}
	case 13:
		if depth > 0 {
			return amqp.Table{"x": randomValue(rnd, depth-1)}
		}
	}
	return strings.Repeat("\xfe", rnd.IntN(300))
}
