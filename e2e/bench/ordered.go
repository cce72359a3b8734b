package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/kinds"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/settle"
)

const (
	orderedKeys     = 1000
	orderedInFlight = 32
	orderHeader     = "amqp-partition-key"
)

// orderedRow and orderedWorkerRow: ordered_by over 1,000 keys, against the same
// run without it. -scale 5 makes 100,000 messages.
var (
	orderedRow = orderRow("ordered, handler in the process", func() (hooks.Hook, error) {
		return hookFunc(func(context.Context, hooks.Message) (hooks.Outcome, error) {
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		}), nil
	})
	orderedWorkerRow = orderRow("ordered, worker", func() (hooks.Hook, error) {
		h, err := selfWorker(orderedInFlight / workerProcesses)
		if err != nil {
			return nil, err
		}
		return kinds.New(h, kinds.Options{Queue: workQueue, Concurrency: orderedInFlight})
	})
)

func orderRow(name string, hook func() (hooks.Hook, error)) row {
	return row{
		name: name, target: 0.6, count: 20000,
		bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			took, _, err := b.runKeyed(ctx, hook, n, runtime.Order{})
			return took, err
		},
		ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			took, broken, err := b.runKeyed(ctx, hook, n, runtime.Order{By: runtime.OrderByHeader, Header: orderHeader})
			fmt.Fprintf(os.Stderr, "bench: %s: %d of %d messages out of order or beside another of their key\n", name, broken, n)
			if err == nil && broken > 0 {
				err = fmt.Errorf("the order of %d messages is broken", broken)
			}
			return took, err
		},
	}
}

// runKeyed handles n messages spread over the keys and counts those that broke
// the order of theirs.
func (b *bench) runKeyed(ctx context.Context, newHook func() (hooks.Hook, error), n int, order runtime.Order) (time.Duration, int, error) {
	keyed := func(i int) amqp.Publishing {
		p := b.message(i)
		p.MessageId = strconv.Itoa(i)
		p.Headers = amqp.Table{orderHeader: strconv.Itoa(i % orderedKeys)}
		return p
	}
	if err := b.fillWith(n, keyed); err != nil {
		return 0, 0, err
	}
	hook, err := newHook()
	if err != nil {
		return 0, 0, err
	}
	if c, ok := hook.(hooks.Closer); ok {
		defer c.Close()
	}
	checked := &orderCheck{hook: hook, keys: map[string]*keyState{}}
	t, err := b.consumeOurs(ctx, runtime.Queue{
		Policy:      settle.Policy{Queue: workQueue, Type: settle.Classic},
		Hook:        checked,
		Timeout:     time.Minute,
		Prefetch:    2 * orderedInFlight,
		Concurrency: orderedInFlight,
		Order:       order,
	}, n)
	return t.sinceReady(), checked.broken, err
}

// orderCheck counts the messages that are handled before an earlier one of their
// key has ended.
type orderCheck struct {
	hook hooks.Hook

	mu     sync.Mutex
	keys   map[string]*keyState
	broken int
}

type keyState struct {
	running int
	last    int
}

// Handle runs the hook between two looks.
func (c *orderCheck) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	k := c.enter(m)
	defer c.leave(k)
	return c.hook.Handle(ctx, m)
}

func (c *orderCheck) enter(m hooks.Message) *keyState {
	key, _ := m.Headers[orderHeader].(string)
	n, err := strconv.Atoi(m.MessageID)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.keys[key]
	if k == nil {
		k = &keyState{last: -1}
		c.keys[key] = k
	}
	if err != nil || k.running > 0 || n <= k.last {
		c.broken++
	}
	k.running++
	k.last = n
	return k
}

func (c *orderCheck) leave(k *keyState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.running--
}
