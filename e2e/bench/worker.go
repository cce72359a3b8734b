package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
)

// What the worker row keeps in flight, in how many processes.
const (
	workerInFlight  = 16
	workerProcesses = 2
)

// workerRow: a line of JSON to a long-lived process and back per message,
// against a bare consumer that acks. The worker is this program.
var workerRow = row{
	name: "worker handler", target: 0.7, count: 50000,
	bare: func(_ context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		return b.consumeBare(n, 2*workerInFlight, workerInFlight, func(d *amqp.Delivery) error { return d.Ack(false) })
	},
	ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		h, err := selfWorker(workerInFlight / workerProcesses)
		if err != nil {
			return 0, err
		}
		return b.runKind(ctx, h, n, inFlight(workerInFlight))
	},
}

// batchRow: 32 messages in one line; each process has a line, and the next one
// in its pipe.
var batchRow = row{
	name: "batch of 32 through a worker", target: 0.9, count: 50000,
	bare: func(_ context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		return b.consumeBare(n, batchLoad.prefetch, batchLoad.concurrency*batchLoad.batch, func(d *amqp.Delivery) error { return d.Ack(false) })
	},
	ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		h, err := selfWorker(batchLoad.concurrency / workerProcesses)
		if err != nil {
			return 0, err
		}
		return b.runKind(ctx, h, n, batchLoad)
	},
}

// batchLoad has the prefetch that a spec has by default.
var batchLoad = load{concurrency: 2 * workerProcesses, prefetch: 4 * workerProcesses * 32, batch: 32}

// selfWorker is a handler whose processes are this program.
func selfWorker(pipeline int) (*spec.Handler, error) {
	self, err := os.Executable()
	return workerHandler(pipeline, self, "-worker"), err
}

func workerHandler(pipeline int, command ...string) *spec.Handler {
	h := &spec.Handler{
		Kind: spec.Worker, Dir: "/", Timeout: time.Minute, KillGrace: time.Second,
		Processes: workerProcesses, Pipeline: pipeline,
	}
	for _, word := range command {
		h.Command = append(h.Command, spec.Text{Value: word, Source: word})
	}
	return h
}

// work acks every request, as a worker does that reads its body or its messages. It writes when
// no further request is there, which costs one call for many answers.
func work(in io.Reader, out io.Writer) {
	r, w := bufio.NewReaderSize(in, 64<<10), bufio.NewWriter(out)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		var request struct {
			ID, Body string
			Messages []struct{ Body string }
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return
		}
		_, _ = w.WriteString(`{"id":"` + request.ID + `","outcome":"ack"}` + "\n")
		if r.Buffered() == 0 {
			_ = w.Flush() // a closed pipe shows at the next read
		}
	}
}
