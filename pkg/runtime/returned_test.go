package runtime

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// Every copy is returned, because its waiting queue is gone, and the connections
// are cut meanwhile. Nothing may stall: a stop ends the run, which nothing else
// would. Not parallel: it counts goroutines.
func TestReturnedCopiesDoNotStallTheRun(t *testing.T) {
	const messages, concurrency = 2000, 50
	b := newBench(t)
	way := newProxy(b)
	queue := b.queue(settle.Classic, nil)
	p := settle.Policy{Queue: queue, Type: settle.Classic, MaxAttempts: 1000, DeadLetter: queue + ".dead", Delay: &settle.Delay{
		Strategy: "dlx_ttl", Mode: settle.ModeCopy, Route: waitIn(queue + ".gone"),
	}, Backoff: &settle.Backoff{Initial: time.Second, Factor: 1}}
	b.fill(queue, messages)
	before := goruntime.NumGoroutine()
	hook := &recorder{reply: always(hooks.Retry)}
	cfg := way.through(b.config(Queue{Policy: p, Hook: hook, Concurrency: concurrency}))
	cfg.ShutdownTimeout = time.Hour
	run := b.start(cfg)
	b.eventually("copies to be returned", func() bool { return b.log.count("no such queue") >= 2*concurrency })
	way.cut()
	returned := b.log.count("no such queue")
	b.eventually("copies to be returned after the cut", func() bool { return b.log.count("no such queue") >= returned+concurrency })
	// A few a delivery in hand, not one a message that was returned.
	if n := goruntime.NumGoroutine() - before; n > messages {
		t.Errorf("%d more goroutines than before", n)
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	b.eventually("every message back in the queue", func() bool { return b.ready(queue) >= messages })
	if n := b.ready(queue); n != messages {
		t.Errorf("%d messages in the queue, want %d", n, messages)
	}
}

// fill publishes n confirmed messages.
func (b *bench) fill(queue string, n int) {
	b.t.Helper()
	ch := b.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
	var confirms []*amqp.DeferredConfirmation
	for i := range n {
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{MessageId: fmt.Sprint("m", i)})
		if err != nil {
			b.t.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if !c.Wait() {
			b.t.Fatalf("publish to %s: refused", queue)
		}
	}
}
