package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

const (
	lateMessages = 1000
	lateDelay    = 2 * time.Second
)

// lateQueues are what a spec says; all wait for lateDelay.
var lateQueues = map[string]spec.Queue{
	"timer":  {Type: spec.Classic, Delay: &spec.Delay{Strategy: "timer"}},
	"tiers":  {Type: spec.Quorum, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: []time.Duration{lateDelay, time.Minute}}},
	"native": {Type: spec.Quorum, Delay: &spec.Delay{Strategy: "native", Min: lateDelay, Max: lateDelay}},
}

// latenessOf measures the time from when a retry is due to its next attempt, for
// messages that fail together.
func latenessOf(strategy string) func(context.Context, *bench) (reading, error) {
	return func(ctx context.Context, b *bench) (reading, error) {
		session := broker.On(b.conn, nil)
		if strategy == "native" && !session.Server().Native() {
			return reading{"not on RabbitMQ " + session.Server().Version, ""}, nil
		}
		q := lateQueues[strategy]
		q.Name = workQueue + "-" + strategy
		top := topology.Compile(&spec.Spec{Queues: []spec.Queue{q}}, session.Server())
		defer b.remove(top)
		report, err := broker.Apply(ctx, session, top, nil)
		if err == nil {
			err = report.Err()
		}
		if err != nil {
			return reading{}, err
		}
		late, err := b.lateness(ctx, &q)
		if err != nil {
			return reading{}, err
		}
		slices.Sort(late)
		p50, p99 := late[len(late)/2], late[len(late)*99/100]
		return reading{fmt.Sprintf("p50 %v, p99 %v", p50.Round(time.Millisecond), p99.Round(time.Millisecond)), ""}, nil
	}
}

func (b *bench) remove(top *topology.Topology) {
	ch, err := b.conn.Channel()
	if err != nil {
		return // the broker is a private one, or about to go
	}
	defer ch.Close()
	for _, q := range top.Queues {
		_, _ = ch.QueueDelete(q.Name, false, false, false)
	}
}

// lateness runs q until each message has had its second attempt.
func (b *bench) lateness(ctx context.Context, q *spec.Queue) ([]time.Duration, error) {
	if err := b.publish(q.Name, lateMessages); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	due := map[string]time.Time{}
	var late []time.Duration
	hook := hookFunc(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if at, again := due[m.MessageID]; again {
			late = append(late, now.Sub(at))
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		}
		due[m.MessageID] = now.Add(lateDelay)
		return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: lateDelay}, nil
	})
	_, err := b.consumeOurs(ctx, runtime.Queue{
		Policy: topology.Policy(q), Hook: hook, Prefetch: 2 * copyInFlight, Concurrency: copyInFlight,
	}, 2*lateMessages)
	return late, err
}

// publish sends n persistent messages and waits for their confirms.
func (b *bench) publish(queue string, n int) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirms := make([]*amqp.DeferredConfirmation, n)
	for i := range n {
		if confirms[i], err = ch.PublishWithDeferredConfirm("", queue, true, false, b.message(i)); err != nil {
			return err
		}
	}
	for _, c := range confirms {
		if !c.Wait() {
			return fmt.Errorf("the broker refused a message to %s", queue)
		}
	}
	return nil
}
