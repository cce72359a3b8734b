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
	name: "worker hook", target: 0.7, count: 50000,
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
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		h := &spec.Handler{
			Kind: spec.Worker, Dir: "/", Timeout: time.Minute, KillGrace: time.Second,
			Command:   []spec.Text{{Value: self, Source: self}, {Value: "-worker", Source: "-worker"}},
			Processes: workerProcesses, Pipeline: workerInFlight / workerProcesses,
		}
		return b.runKind(ctx, h, n, workerInFlight)
	},
}

// work acks every request, as a worker does that reads its body. It writes when
// no further request is there, which costs one call for many answers.
func work(in io.Reader, out io.Writer) {
	r, w := bufio.NewReaderSize(in, 64<<10), bufio.NewWriter(out)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		var request struct{ ID, Body string }
		if err := json.Unmarshal(line, &request); err != nil {
			return
		}
		_, _ = w.WriteString(`{"id":"` + request.ID + `","outcome":"ack"}` + "\n")
		if r.Buffered() == 0 {
			_ = w.Flush() // a closed pipe shows at the next read
		}
	}
}
