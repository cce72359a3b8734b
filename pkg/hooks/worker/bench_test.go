package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// BenchmarkWorker keeps 16 calls in flight in 2 processes, as the row of the
// same name in e2e/bench does.
func BenchmarkWorker(b *testing.B) {
	const inFlight = 16
	h := workerHandler(b, "quick")
	h.Processes, h.Pipeline = 2, 8
	hook, err := New(h, setup.Options{Concurrency: inFlight})
	if err != nil {
		b.Fatal(err)
	}
	defer hook.(hooks.Closer).Close()
	m := hooks.Message{
		Queue: "orders", RoutingKey: "orders", MessageID: "1", ContentType: "application/json", Attempt: 1,
		Body: []byte(strings.Repeat(`{"sku":"A-1"}, `, 16)),
	}
	b.ReportAllocs()
	b.ResetTimer()
	var calls sync.WaitGroup
	next := make(chan struct{})
	for range inFlight {
		calls.Go(func() {
			for range next {
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				o, err := hook.Handle(ctx, m)
				cancel()
				if err != nil || o.Verdict != hooks.Ack {
					b.Error(o, err)
				}
			}
		})
	}
	for b.Loop() {
		next <- struct{}{}
	}
	close(next)
	calls.Wait()
}
