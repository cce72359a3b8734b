package runtime

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// proxy notes the connections of the runtime and can cut them.
type proxy struct {
	b *bench

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(b *bench) *proxy { return &proxy{b: b} }

// cut ends every connection that is open now; new ones pass.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) connect(cfg amqp.Config) (*amqp.Connection, error) {
	cfg.Dial = func(network, addr string) (net.Conn, error) {
		conn, err := p.b.network(network, addr)
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.conns = append(p.conns, conn)
		}
		return conn, err
	}
	return p.b.connect(cfg)
}

// through makes cfg connect by way of the proxy.
func (p *proxy) through(cfg Config) Config {
	cfg.Dial = func(context.Context, string) (*amqp.Connection, error) { return p.connect(amqp.Config{}) }
	return cfg
}

func TestHookThatOutlivesItsConnectionIsNotSettledElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		id   func(i int) string
		runs int // of the hooks that were running when the connection was cut
	}{
		{"with message ids no handler runs twice", func(i int) string { return fmt.Sprint("id-", i) }, 1},
		{"without message ids a handler runs at most twice", func(int) string { return "" }, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := newProxy(b)
				q := b.queue(settle.Classic, nil)
				const n, concurrency = 20, 4
				for i := range n {
					b.publish(q, amqp.Publishing{MessageId: tt.id(i), Body: []byte(fmt.Sprint(i))})
				}
				var mu sync.Mutex
				runs := map[string]int{}
				started, release := make(chan struct{}, 2*n), make(chan struct{})
				hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
					mu.Lock()
					runs[string(m.Body)]++
					mu.Unlock()
					started <- struct{}{}
					<-release
					return hooks.Outcome{Verdict: hooks.Ack}, nil
				})
				run := b.start(p.through(b.config(Queue{Policy: settle.Policy{Queue: q, Type: settle.Classic}, Hook: hook, Concurrency: concurrency})))
				for range concurrency {
					<-started
				}
				p.cut()
				b.eventually("the loss to be noticed", func() bool { return b.log.has("no connection to the broker") })
				close(release)
				b.eventually("every message to run", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(runs) == n && b.ready(q) == 0
				})
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				for body, k := range runs {
					if k > tt.runs {
						t.Errorf("message %s ran %d times, want at most %d", body, k, tt.runs)
					}
				}
				if b.log.has("unknown delivery tag") {
					t.Error("a delivery was settled on another channel")
				}
				if b.ready(q) != 0 {
					t.Errorf("%d messages are left", b.ready(q))
				}
			})
		})
	}
}

func TestOutageOfTheBrokerIsWaitedFor(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := newProxy(b)
		policy := capped(b, settle.Classic, 100)
		const n = 100
		for i := range n {
			b.publish(policy.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		var mu sync.Mutex
		acked := map[string]bool{}
		hook := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
			time.Sleep(5 * time.Millisecond)
			if m.Attempt < 3 {
				return hooks.Outcome{Verdict: hooks.Retry}, nil
			}
			mu.Lock()
			defer mu.Unlock()
			acked[m.MessageID] = true
			return hooks.Outcome{Verdict: hooks.Ack}, nil
		})
		run := b.start(p.through(b.config(Queue{Policy: policy, Hook: hook, Concurrency: 8})))
		for cut := range 4 {
			b.eventually("some progress", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(acked) > cut*10
			})
			p.cut()
		}
		b.eventually("every message to be acked", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acked) == n
		})
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}
