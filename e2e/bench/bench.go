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
func (b *bench) fill(n int) error { return b.fillWith(n, b.message) }

func (b *bench) fillWith(n int, message func(i int) amqp.Publishing) error {
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
		last, err = ch.PublishWithDeferredConfirm("", workQueue, false, false, message(i))
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

// times are when a run of ours was ready, settled its first message and its last.
type times struct{ ready, first, last time.Time }

// sinceReady includes two connections; bare loops open theirs outside of the
// clock.
func (t times) sinceReady() time.Duration { return t.last.Sub(t.ready) }

// settling is what a program that counts its own settlements sees.
func (t times) settling() time.Duration { return t.last.Sub(t.first) }

// consumeOurs runs the runtime on q until n messages are settled. It connects as
// rsctl run does.
func (b *bench) consumeOurs(ctx context.Context, q runtime.Queue, n int) (t times, err error) {
	work, kill := context.WithCancel(ctx)
	defer kill()
	intake, stop := context.WithCancel(work)
	defer stop()
	ready := make(chan time.Time, 1)
	settled := newSettlements(n)
	cfg := runtime.Config{
		Dial: func(ctx context.Context, _ string) (*amqp.Connection, error) {
			return broker.Dial(ctx, spec.Broker{URL: spec.Text{Value: b.url, Source: b.url}}, "bench")
		},
		Queues:   []runtime.Queue{q},
		Log:      slog.New(slog.DiscardHandler),
		Observer: settled,
		Prepare: func(context.Context, *amqp.Connection) error {
			ready <- time.Now()
			return nil
		},
	}
	result := make(chan error, 1)
	go func() { result <- runtime.Run(intake, work, cfg) }()
	select {
	case t.last = <-settled.done:
	case err := <-result:
		return t, fmt.Errorf("ended early: %w", err)
	case <-time.After(2 * time.Minute):
		return t, errors.New("not done after two minutes")
	}
	stop()
	t.ready, t.first = <-ready, settled.first
	return t, <-result
}

// settlements is an observer that notes the first settlement and the n-th.
type settlements struct {
	n     int64
	count atomic.Int64
	first time.Time
	done  chan time.Time
}

func newSettlements(n int) *settlements {
	return &settlements{n: int64(n), done: make(chan time.Time, 1)}
}

// Observe implements [runtime.Observer].
func (s *settlements) Observe(e runtime.Event) {
	if _, ok := e.(runtime.Settled); !ok {
		return
	}
	switch s.count.Add(1) {
	case s.n:
		s.done <- time.Now()
	case 1:
		s.first = time.Now()
	}
}
