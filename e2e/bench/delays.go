package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/settle"
)

// delayedRow: copies to a waiting queue, against a loop that publishes each
// message elsewhere, waits for the confirm and acks the original.
var delayedRow = row{
	name: "delayed copies", target: 0.8, count: 20000,
	bare: func(_ context.Context, b *bench, n int) (time.Duration, error) {
		return b.copyBare(n, "3600000", func(d *amqp.Delivery) error { return d.Ack(false) })
	},
	ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		delay := &settle.Delay{Strategy: "dlx_ttl", Mode: settle.ModeCopy, Route: func(d time.Duration) settle.Target {
			return settle.Target{Key: sinkQueue, Queue: sinkQueue, Expiration: d}
		}}
		t, err := b.consumeOurs(ctx, runtime.Queue{
			Policy:      settle.Policy{Queue: workQueue, Type: settle.Classic, Delay: delay},
			Hook:        always(hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Hour}),
			Prefetch:    2 * copyInFlight,
			Concurrency: copyInFlight,
		}, n)
		return t.sinceReady(), err
	},
}

// A reading is what one delay measurement prints.
type reading struct{ value, target string }

// delayReadings are measured once each, in the order of the table.
var delayReadings = []struct {
	name string
	read func(ctx context.Context, b *bench) (reading, error)
}{
	{"memory of 10,000 held timers", timersMemory},
	{"lateness of timer", latenessOf("timer")},
	{"lateness of dlx_ttl tiers", latenessOf("tiers")},
	{"lateness of native", latenessOf("native")},
}

// runDelays prints what is measured in other units than messages per second.
func runDelays(ctx context.Context, b *bench, out io.Writer, only string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range delayReadings {
		if !strings.Contains(r.name, only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", r.name)
		got, err := r.read(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", r.name, got.value, got.target)
	}
	return w.Flush()
}
