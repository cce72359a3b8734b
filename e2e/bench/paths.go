package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/kinds"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

const (
	execInFlight = 4
	httpInFlight = 64
	copyInFlight = 64
)

// execRow: a process per message, against forking the same command bare.
var execRow = row{
	name: "exec handler", target: 0.9, count: 2000,
	bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		return inParallel(n, execInFlight, func() error {
			cmd := exec.CommandContext(ctx, "cat")
			cmd.Stdin = bytes.NewReader(b.body)
			return cmd.Run()
		})
	},
	ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		h := &spec.Handler{Kind: spec.Exec, Command: []spec.Text{{Value: "cat", Source: "cat"}}, Dir: "/", Timeout: time.Minute, KillGrace: time.Second}
		return b.runKind(ctx, h, n, inFlight(execInFlight))
	},
}

// load is how much of a queue is worked on at a time.
type load struct{ concurrency, prefetch, batch int }

func inFlight(n int) load { return load{concurrency: n, prefetch: 2 * n} }

// runKind handles n messages with a hook built from a spec.
func (b *bench) runKind(ctx context.Context, h *spec.Handler, n int, l load) (time.Duration, error) {
	t, err := b.timeKind(ctx, h, n, l)
	return t.sinceReady(), err
}

func (b *bench) timeKind(ctx context.Context, h *spec.Handler, n int, l load) (times, error) {
	hook, err := kinds.New(h, kinds.Options{Queue: workQueue, Concurrency: l.concurrency})
	if err != nil {
		return times{}, err
	}
	if c, ok := hook.(hooks.Closer); ok {
		defer c.Close()
	}
	return b.consumeOurs(ctx, runtime.Queue{
		Policy:      settle.Policy{Queue: workQueue, Type: settle.Classic},
		Hook:        hook,
		Timeout:     h.Timeout,
		Prefetch:    l.prefetch,
		Concurrency: l.concurrency,
		Batch:       runtime.Batch{Size: l.batch, Wait: 50 * time.Millisecond},
	}, n)
}

// httpRow: a POST per message, against the slower of a bare consumer that acks
// and a bare keep-alive client. The endpoint answers at once, so that everything
// is limited by the processors, which rsctl shares between both halves.
var httpRow = postRow("http handler, endpoint takes 0 ms", 20000, 0)

// slowHTTPRow is the same with an endpoint that takes its time, as real ones do.
var slowHTTPRow = postRow("http handler, endpoint takes 5 ms", 20000, 5*time.Millisecond)

func postRow(name string, count int, takes time.Duration) row {
	return row{
		name: name, target: 0.8, count: count,
		bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			if err := b.fill(n); err != nil {
				return 0, err
			}
			consume, err := b.consumeBare(n, 2*httpInFlight, httpInFlight, func(d *amqp.Delivery) error { return d.Ack(false) })
			if err != nil {
				return 0, err
			}
			post, err := b.postBare(ctx, n, takes)
			return max(consume, post), err
		},
		ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			t, err := b.postOurs(ctx, n, takes, inFlight(httpInFlight))
			return t.sinceReady(), err
		},
	}
}

// postOurs posts n messages to an endpoint that takes so long.
func (b *bench) postOurs(ctx context.Context, n int, takes time.Duration, l load) (times, error) {
	if err := b.fill(n); err != nil {
		return times{}, err
	}
	server := endpoint(takes)
	defer server.Close()
	url := spec.Text{Value: server.URL, Source: server.URL}
	return b.timeKind(ctx, &spec.Handler{Kind: spec.HTTP, URL: url, Timeout: time.Minute, MaxRetryAfter: time.Hour}, n, l)
}

func endpoint(takes time.Duration) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(takes)
	}))
}

func (b *bench) postBare(ctx context.Context, n int, takes time.Duration) (time.Duration, error) {
	server := endpoint(takes)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: httpInFlight}}
	defer client.CloseIdleConnections()
	return inParallel(n, httpInFlight, func() error { return post(ctx, client, server.URL, b.body) })
}

// inParallel calls f n times, width at a time, and returns how long that took.
func inParallel(n, width int, f func() error) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	start := time.Now()
	errs := make(chan error, width)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return time.Since(start), nil
	}
}

func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	return nil
}

// copyRow: retry copies of a classic queue, against a loop that publishes each
// message elsewhere, waits for the confirm and rejects the original.
var copyRow = row{
	name: "classic retry copies", target: 0.8, count: 20000,
	bare: func(_ context.Context, b *bench, n int) (time.Duration, error) {
		return b.copyBare(n, "", func(d *amqp.Delivery) error { return d.Reject(false) })
	},
	ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
		if err := b.fill(n); err != nil {
			return 0, err
		}
		t, err := b.consumeOurs(ctx, runtime.Queue{
			Policy:      settle.Policy{Queue: workQueue, Type: settle.Classic, MaxAttempts: 1, DeadLetter: sinkQueue},
			Hook:        always(hooks.Outcome{Verdict: hooks.Retry}),
			Prefetch:    2 * copyInFlight,
			Concurrency: copyInFlight,
		}, n)
		return t.sinceReady(), err
	},
}

// always is a hook that gives every message the same outcome.
func always(o hooks.Outcome) hooks.Hook {
	return hookFunc(func(context.Context, hooks.Message) (hooks.Outcome, error) { return o, nil })
}

// copyBare publishes a copy of each message elsewhere, waits for its confirm and
// then settles the original.
func (b *bench) copyBare(n int, expiration string, settle func(d *amqp.Delivery) error) (time.Duration, error) {
	if err := b.fill(n); err != nil {
		return 0, err
	}
	conn, err := amqp.Dial(b.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	if err := ch.Confirm(false); err != nil {
		return 0, err
	}
	return b.consumeBare(n, 2*copyInFlight, copyInFlight, func(d *amqp.Delivery) error {
		p := amqp.Publishing{
			Headers: amqp.Table{"x-ruststream-retry-count": "1"}, Expiration: expiration,
			MessageId: d.MessageId, DeliveryMode: d.DeliveryMode, Body: d.Body,
		}
		confirm, err := ch.PublishWithDeferredConfirm("", sinkQueue, true, false, p)
		if err != nil {
			return err
		}
		if !confirm.Wait() {
			return errors.New("nacked")
		}
		return settle(d)
	})
}

type hookFunc func(context.Context, hooks.Message) (hooks.Outcome, error)

func (f hookFunc) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	return f(ctx, m)
}
