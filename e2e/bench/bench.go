package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// bench holds what all rows share.
type bench struct {
	url  string
	conn *amqp.Connection
	body []byte
}

// queue names are fixed: every round deletes and declares them anew.
const (
	workQueue = "rsctl-bench"
	sinkQueue = "rsctl-bench-sink"
)

func newBench(context.Context) (*bench, error) {
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		return nil, errors.New("set RSCTL_AMQP_URL, or run make bench, which starts a broker")
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	return &bench{url: url, conn: conn, body: bytes.Repeat([]byte(`{"sku":"A-1","n":2}, `), 12)}, nil
}

func (b *bench) close() {
	if ch, err := b.conn.Channel(); err == nil {
		_, _ = ch.QueueDelete(workQueue, false, false, false)
		_, _ = ch.QueueDelete(sinkQueue, false, false, false)
	}
	_ = b.conn.Close()
}

// fill declares both queues anew and publishes n confirmed messages.
func (b *bench) fill(n int) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	for _, q := range []string{workQueue, sinkQueue} {
		if _, err := ch.QueueDelete(q, false, false, false); err != nil {
			return err
		}
		if _, err := ch.QueueDeclare(q, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
			return err
		}
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		last, err = ch.PublishWithDeferredConfirm("", workQueue, false, false, b.message(i))
		if err != nil {
			return err
		}
	}
	if last != nil && !last.Wait() {
		return errors.New("the broker refused a message")
	}
	return nil
}

func (b *bench) message(i int) amqp.Publishing {
	return amqp.Publishing{
		MessageId:    fmt.Sprint("bench-", i),
		ContentType:  "application/octet-stream",
		DeliveryMode: amqp.Persistent,
		Body:         b.body,
	}
}

// consumeBare handles n deliveries on a connection of its own with as many
// goroutines as in flight; handle settles. It returns the time from the first
// delivery to the last settlement.
func (b *bench) consumeBare(n, prefetch, inFlight int, handle func(d *amqp.Delivery) error) (time.Duration, error) {
	conn, err := amqp.Dial(b.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return 0, err
	}
	start := time.Now()
	deliveries, err := ch.Consume(workQueue, "", false, false, false, false, nil)
	if err != nil {
		return 0, err
	}
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	errs := make(chan error, inFlight)
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for {
				select {
				case d := <-deliveries:
					if err := handle(&d); err != nil {
						errs <- err
						return
					}
					if left.Add(-1) == 0 {
						close(done)
					}
				case <-done:
					return
				}
			}
		})
	}
	select {
	case <-done:
	case err := <-errs:
		return 0, err
	}
	took := time.Since(start)
	workers.Wait()
	return took, nil
}

// consumeOurs runs the runtime on q until n messages have ended, which counted
// tells, and returns how long that took from the start of the run. The start
// includes two connections; bare loops open theirs outside of the clock.
func (b *bench) consumeOurs(ctx context.Context, q runtime.Queue, n int, counted *counter) (time.Duration, error) {
	work, kill := context.WithCancel(ctx)
	defer kill()
	intake, stop := context.WithCancel(work)
	defer stop()
	ready := make(chan time.Time, 1)
	cfg := runtime.Config{
		Dial:   func(ctx context.Context, _ string) (*amqp.Connection, error) { return broker.Dial(ctx, spec.Broker{URL: spec.Text{Value: b.url, Source: b.url}}, "bench") },
		Queues: []runtime.Queue{q},
		Log:    slog.New(slog.DiscardHandler),
		Prepare: func(context.Context, *amqp.Connection) error {
			ready <- time.Now()
			return nil
		},
	}
	counted.reset(n)
	result := make(chan error, 1)
	go func() { result <- runtime.Run(intake, work, cfg) }()
	var end time.Time
	select {
	case end = <-counted.done:
	case err := <-result:
		return 0, fmt.Errorf("ended early: %w", err)
	case <-time.After(2 * time.Minute):
		return 0, errors.New("not done after two minutes")
	}
	stop()
	return end.Sub(<-ready), <-result
}

// counter is a hook that counts what it passes on.
type counter struct {
	hook hooks.Hook
	left atomic.Int64
	done chan time.Time
}

func count(h hooks.Hook) *counter { return &counter{hook: h, done: make(chan time.Time, 1)} }

func (c *counter) reset(n int) { c.left.Store(int64(n)) }

// Handle runs the hook and notes when the last one has answered.
func (c *counter) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	o, err := c.hook.Handle(ctx, m)
	if c.left.Add(-1) == 0 {
		c.done <- time.Now()
	}
	return o, err
}
